// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"slices"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
)

// given returns what the steps are given about a cluster, and what removes its add-ons that leave.
func given(t *testing.T, records ...deliver.Summary) (*addons.Cluster, *removal.Removal) {
	t.Helper()
	c := addons.Given(t, records...)
	return c, &removal.Removal{
		Observed: &c.Observed, Deliverer: c.Deliverer, Workload: c.Workload, Proofs: c.Proofs, Memory: c.Memory,
		Contents: removal.Contents{Inputs: c.Inputs, Renderer: c.Renderer(), Deliverer: c.Deliverer, Target: c.Workload.Target()},
	}
}

// partition returns the records of the add-ons that leave, and the statuses of the others.
func partition(c *addons.Cluster) (leaving []deliver.Summary, kept []addonsv1.AddonStatus) {
	return removal.Unwanted{Observed: &c.Observed, Proofs: c.Proofs}.Partition()
}

// What has to go waits for what depends on it, or may take over its objects.
func TestLeavingWaits(t *testing.T) {
	base, web := addons.Installed("platform", "base"), addons.Installed("other", "web", "platform/base")
	for name, tc := range map[string]struct {
		prepare    func(q *removal.Removal)
		successors []*wanted.Addon
		want       string
	}{
		"a wanted add-on depends on it": {func(q *removal.Removal) {
			dependent := wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps", DependsOn: []string{"platform/base"}}, Stack: "other"}
			q.Wanted = []wanted.Addon{dependent}
		}, nil, reasons.WaitingForDependent},
		"one that is left as it is depends on it": {func(q *removal.Removal) {
			q.Kept = []addonsv1.AddonStatus{releases.Status(web, addonsv1.AddonUnassigned)}
		}, nil, reasons.WaitingForDependent},
		"another one goes before": {func(q *removal.Removal) { q.Leaving = append(q.Leaving, web) }, nil, reasons.WaitingForDependent},
		"a stack isn't known yet that may want its objects": {func(q *removal.Removal) {
			q.Unresolved = map[string]gather.Unresolved{"new": {State: decide.Unseen}}
		}, nil, reasons.WaitingForSuccessor},
		"the removal of a stack is held that isn't there, and may want its objects": {func(q *removal.Removal) {
			q.Unresolved = map[string]gather.Unresolved{"new": {State: decide.Held}}
		}, nil, reasons.WaitingForSuccessor},
		"one of its stack may take over its objects": {func(*removal.Removal) {}, []*wanted.Addon{
			{Addon: addonsv1.Addon{Name: "next", Namespace: "apps", Chart: addonsv1.ChartSource{Path: "next"}}, Stack: "platform"},
		}, reasons.WaitingForSuccessor},
	} {
		t.Run(name, func(t *testing.T) {
			_, q := given(t, base, web)
			q.Leaving = []deliver.Summary{base}
			tc.prepare(q)
			var all result.All
			q.Remove(t.Context(), tc.successors, &all)
			at := slices.IndexFunc(all.Statuses, func(s addonsv1.AddonStatus) bool { return s.Name == "base" })
			if at < 0 || all.Statuses[at].Reason != tc.want || all.Statuses[at].Phase != addonsv1.AddonRemoving {
				t.Errorf("got %+v, want %s", all.Statuses, tc.want)
			}
		})
	}
}

// A removal that has begun waits for no other add-on: half of what it would leave to that one may be gone.
func TestLeavingThatHasBegunWaitsForNoSuccessor(t *testing.T) {
	base := addons.Installed("platform", "base")
	base.Complete, base.Status = true, deliver.StatusUninstalling
	c, q := given(t, base)
	q.Leaving = []deliver.Summary{base}
	next := wanted.Addon{Addon: addonsv1.Addon{Name: "next", Namespace: "apps", Chart: addonsv1.ChartSource{Path: "next"}}, Stack: "platform"}
	var all result.All
	if q.Remove(t.Context(), []*wanted.Addon{&next}, &all); *c.Requests == 0 || all.Statuses[0].Reason == reasons.WaitingForSuccessor {
		t.Errorf("got %+v", all.Statuses)
	}
}
