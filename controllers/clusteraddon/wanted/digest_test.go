// SPDX-License-Identifier: Apache-2.0

package wanted_test

import (
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/addons"
)

// Fields for which nothing is installed otherwise are no part of a spec's digest.
func TestSpecDigest(t *testing.T) {
	plain, other, more := addons.Wanted("platform", "web"), addons.Wanted("platform", "web"), addons.Wanted("platform", "web")
	more.Drift, more.Lifecycle = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport}, &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}
	if plain.SpecDigest() != more.SpecDigest() {
		t.Error("its drift policy or its lifecycle makes a difference")
	}
	if other.ValuesTemplate = "a: b"; plain.SpecDigest() == other.SpecDigest() {
		t.Error("its values make none")
	}
}

// An add-on never takes over the release of its own name: its adoption policy is for that.
func TestAdoptedRelease(t *testing.T) {
	plain := addons.Wanted("platform", "web")
	own := plain.Release()
	for name, tc := range map[string]struct {
		from *addonsv1.ReleaseReference
		want deliver.Release
	}{
		"none":             {},
		"its own":          {from: &addonsv1.ReleaseReference{Name: own.Name, StorageNamespace: own.Namespace}},
		"its own, unnamed": {from: &addonsv1.ReleaseReference{}},
		"another":          {from: &addonsv1.ReleaseReference{Name: "previous"}, want: deliver.Release{Namespace: own.Namespace, Name: "previous"}},
		"elsewhere":        {from: &addonsv1.ReleaseReference{StorageNamespace: "flux"}, want: deliver.Release{Namespace: "flux", Name: own.Name}},
	} {
		a := addons.Wanted("platform", "web")
		a.AdoptRelease = tc.from
		if got := a.AdoptedRelease(); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// An add-on isn't as it is wanted while another one has something of it.
func TestInstalledAsWanted(t *testing.T) {
	a := addons.Wanted("platform", "web")
	staged, own, rotated := addonsv1.ValuesReference{Kind: "Secret", Name: "db"}, addonsv1.ValuesReference{Kind: "Secret", Name: "{{ .Cluster.metadata.name }}"}, addonsv1.ValuesReference{Kind: "Secret", Name: "token", Staged: ptr.To(false)}
	a.ValuesFrom = []addonsv1.ValuesReference{staged, own, rotated}
	a.Pinned = stack.Inputs{"Secret/db/values.yaml": "1", "Secret/token/values.yaml": "2"}
	if got := a.PinnedSources(); len(got) != 1 || got[0].Name != "db" {
		t.Errorf("a credential that rotates, and a name for each cluster, aren't pinned: %+v", got)
	}
	pinned := a.InputsDigest()
	if list := wanted.WithInputs(wanted.WithInputs("", "other"), pinned); list != pinned+",other" || wanted.WithInputs(list, "other") != list {
		t.Errorf("got %s", list)
	}
	for name, tc := range map[string]struct {
		change func(*deliver.Summary)
		want   bool
	}{
		"of other pinned values":             {func(r *deliver.Summary) { r.Inputs = "other" }, false},
		"also of other pinned values":        {func(r *deliver.Summary) { r.Inputs = wanted.WithInputs(r.Inputs, "other") }, true},
		"it is":                              {func(*deliver.Summary) {}, true},
		"it failed":                          {func(r *deliver.Summary) { r.Status = "failed" }, false},
		"of another spec":                    {func(r *deliver.Summary) { r.Spec = "other" }, false},
		"another add-on has something of it": {func(r *deliver.Summary) { r.GivenAway = "true" }, false},
	} {
		record := deliver.Summary{Status: deliver.StatusDeployed, Terms: deliver.Terms{Spec: a.SpecDigest(), Inputs: pinned}}
		tc.change(&record)
		if got := a.IsInstalledAs(record); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
