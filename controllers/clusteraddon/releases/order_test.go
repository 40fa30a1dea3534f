// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Names of dependencies are of one stack. Records of different times may say that two depend on each other.
func TestRemovalGoesAgainstDependencies(t *testing.T) {
	summary := func(stack, name string, dependsOn ...string) deliver.Summary {
		return deliver.Summary{Release: deliver.Release{Name: name}, Terms: deliver.Terms{Stack: stack, DependsOn: dependsOn}}
	}
	kept := deliver.Release{Name: "kept"}
	for name, tc := range map[string]struct {
		installed []deliver.Summary
		want      map[string]string // who waits for whom
	}{
		"none":            {nil, map[string]string{}},
		"several":         {[]deliver.Summary{summary("a", "base"), summary("a", "middle", "base"), summary("a", "top", "middle"), summary("a", kept.Name, "base")}, map[string]string{"base": "middle", "middle": "top"}},
		"another stack's": {[]deliver.Summary{summary("a", "base"), summary("b", "web", "base")}, map[string]string{}},
		"a cycle begins":  {[]deliver.Summary{summary("a", "one", "other"), summary("a", "other", "one")}, map[string]string{"other": "one"}},
	} {
		installed, got := map[deliver.Release]deliver.Summary{}, map[string]string{}
		for _, record := range tc.installed {
			installed[record.Release] = record
		}
		for release, other := range releases.Dependents(releases.InOrder(installed, sets.New(kept))) {
			got[release.Name] = other
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: who waits for whom: -want +got:\n%s", name, diff)
		}
	}
}
