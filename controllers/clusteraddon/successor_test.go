// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
)

// TestSuccessorsThatCannotBeKnown has add-ons that can't say what they are to have, or what the
// leaving one has. Those of the same stack are assumed to have the same, and new ones that may be the same in another place.
func TestSuccessorsThatCannotBeKnown(t *testing.T) {
	same, other, added := addons.Wanted("a", "same"), addons.Wanted("b", "other"), addons.Wanted("b", "added")
	leaving := deliver.Summary{Release: deliver.Release{Namespace: added.Release().Namespace, Name: "old"}, Terms: deliver.Terms{Stack: "a"}, Chart: "web"}
	far, chart, named := addons.Wanted("b", "far"), addons.Wanted("b", "chart"), addons.Wanted("b", "old")
	for _, a := range []*wanted.Addon{&far, &chart, &named} {
		a.Namespace, a.Chart = "elsewhere", addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/charts/db"}}
	}
	chart.Chart.OCI = &addonsv1.OCISource{URL: "oci://example.org/charts/web"}
	q, _ := askedCluster(t)
	q.installed[same.Release()], q.installed[other.Release()] = deliver.Summary{Installed: true}, deliver.Summary{Installed: true}
	for name, contents := range map[string]sets.Set[deliver.ObjectKey]{"the contents aren't known": nil, "the leaving one's record can't be read": {}} {
		got, retryAfter := removal{q}.successorsOf(t.Context(), leaving, []successor{
			{&same, contents}, {&other, contents}, {&added, contents}, {&far, contents}, {&chart, contents}, {&named, contents},
		})
		if diff := cmp.Diff([]string{"same of AddonStack a", "added of AddonStack b", "chart of AddonStack b", "old of AddonStack b"}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if retryAfter != added.ProgressDeadline() {
			t.Errorf("%s: it is looked at again after %s", name, retryAfter)
		}
	}
	q.now = q.now.Add(added.ProgressDeadline())
	got, retryAfter := removal{q}.successorsOf(t.Context(), leaving, []successor{{Addon: &same}, {Addon: &added}})
	if diff := cmp.Diff([]string{"same of AddonStack a"}, got); diff != "" || retryAfter != 0 {
		t.Errorf("another stack's is waited for without end: %s, %s", diff, retryAfter)
	}
}

// A wanted add-on may take over what a leaving one has until it is installed. One that fails isn't waited for once it
// has applied its objects, or has tried each of them and the leaving one may be in the way.
func TestMayTakeOver(t *testing.T) {
	for name, tc := range map[string]struct {
		phase          addonsv1.AddonPhase
		reason         string
		tried, applied bool
		want           bool
	}{
		"it is being installed":               {phase: addonsv1.AddonInstalling, want: true},
		"it waits":                            {phase: addonsv1.AddonPending, want: true},
		"it is Ready":                         {phase: addonsv1.AddonReady, applied: true},
		"it is Degraded":                      {phase: addonsv1.AddonDegraded, applied: true},
		"it is Ready, and a request failed":   {phase: addonsv1.AddonReady, reason: reasons.Retrying, want: true},
		"another one has the release":         {phase: addonsv1.AddonFailed, reason: reasons.ReleaseTaken},
		"it fails before its objects":         {phase: addonsv1.AddonFailed, reason: deliver.ReasonHookFailed, want: true},
		"it has all, and fails":               {phase: addonsv1.AddonFailed, reason: deliver.ReasonHookFailed, tried: true, applied: true},
		"its CRD is refused":                  {phase: addonsv1.AddonFailed, reason: object.ReasonObjectRejected, want: true},
		"an object is refused, and all tried": {phase: addonsv1.AddonFailed, reason: object.ReasonObjectRejected, tried: true},
		"a field can't change, and all tried": {phase: addonsv1.AddonFailed, reason: object.ReasonImmutableField, tried: true},
		"another reason, and all were tried":  {phase: addonsv1.AddonFailed, reason: object.ReasonForbidden, tried: true, want: true},
	} {
		one := addonResult{status: addonsv1.AddonStatus{Phase: tc.phase, Reason: tc.reason}, tried: tc.tried, applied: tc.applied}
		if got := mayTakeOver(one); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMayBringKinds(t *testing.T) {
	of := func(stack, name string, dependsOn ...string) wanted.Addon {
		return wanted.Addon{Stack: stack, Addon: addonsv1.Addon{Name: name, DependsOn: dependsOn}}
	}
	for name, tc := range map[string]struct {
		before, after string
		others        []wanted.Addon
		want          bool
	}{
		"nobody asks":                     {after: "apps/v1/Deployment,v1/Service"},
		"it brings a CRD":                 {after: "apiextensions.k8s.io/v1/CustomResourceDefinition,v1/Service", want: true},
		"it has no CRD any more":          {before: "apiextensions.k8s.io/v1/CustomResourceDefinition", after: "v1/Service", want: true},
		"it brings an API server":         {after: "apiregistration.k8s.io/v1/APIService", want: true},
		"another one depends on it":       {others: []wanted.Addon{of("platform", "dashboards", "operator")}, want: true},
		"one of another stack does":       {others: []wanted.Addon{of("team", "dashboards", "platform/operator")}, want: true},
		"one depends on another stack's":  {others: []wanted.Addon{of("team", "dashboards", "operator")}},
		"it depends on another one":       {others: []wanted.Addon{of("platform", "operator", "dashboards")}},
		"a kind is called almost like it": {after: "example.org/v1/MyCustomResourceDefinition"},
	} {
		t.Run(name, func(t *testing.T) {
			a := of("platform", "operator")
			q := &clusterRun{proofs: &releases.Proofs{}, stacks: stacks{wanted: append(tc.others, a)}}
			if got := mayBringKinds(q.wanted, &a, tc.before, tc.after); got != tc.want {
				t.Errorf("mayBringKinds() = %t", got)
			}
		})
	}
}
