// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

func TestStale(t *testing.T) {
	is := addonsv1.AddonPlanStatus{Revision: "platform-1", ClustersDigest: plan.DigestOf([]string{"a", "b"})}
	for name, tc := range map[string]struct {
		now  plan.Basis
		want string
	}{
		"as it was":           {plan.Basis{Revision: "platform-1", Clusters: []string{"b", "a"}}, addonsv1.PlanCurrentReason},
		"another target":      {plan.Basis{Revision: "platform-2", Clusters: []string{"a", "b"}}, addonsv1.PlanTargetChangedReason},
		"no stack":            {plan.Basis{}, addonsv1.PlanTargetChangedReason},
		"other values":        {plan.Basis{Revision: "platform-1", Replaced: "Secret/a", Clusters: []string{"a", "b"}}, addonsv1.PlanInputsChangedReason},
		"one cluster more":    {plan.Basis{Revision: "platform-1", Clusters: []string{"a", "b", "c"}}, addonsv1.PlanClustersChangedReason},
		"another one instead": {plan.Basis{Revision: "platform-1", Clusters: []string{"a", "c"}}, addonsv1.PlanClustersChangedReason},
	} {
		if got, text := plan.StaleSince(&is, tc.now); got != tc.want || (text == "") != (got == addonsv1.PlanCurrentReason) {
			t.Errorf("%s: %s, %q; want %s", name, got, text, tc.want)
		}
	}
}

// The waves of a target that is rolled out are those of its rollout, and those of another revision are what its rollout will have.
func TestWaves(t *testing.T) {
	two := intstr.FromInt32(2)
	strategy := rollout.Strategy{Waves: []rollout.Wave{{Name: "canary", Size: &two}, {Name: "rest"}}}
	in := rollout.Input{Now: time.Unix(1e9, 0), Target: "platform-2", Strategy: strategy}
	for i := range 10 {
		in.Clusters = append(in.Clusters, rollout.Cluster{Name: fmt.Sprintf("cluster-%d", i), Assigned: "platform-1", State: addonsv1.StackReady})
	}
	members := func(waves []addonsv1.PlanWave) (all [][]string) {
		for _, w := range waves {
			if int(w.Total) != len(w.Members) {
				t.Errorf("wave %s has %d of %d members", w.Name, len(w.Members), w.Total)
			}
			all = append(all, w.Members)
		}
		return all
	}
	d := rollout.Decide(in)
	var want [][]string
	for _, wave := range d.Members {
		var names []string
		for _, m := range wave {
			names = append(names, m.Name)
		}
		want = append(want, slices.Sorted(slices.Values(names)))
	}
	equal := func(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal[[]string]) }
	if got := members(plan.Waves(in, "platform-2", strategy)); !equal(got, want) {
		t.Errorf("the waves are %v, not %v", got, want)
	}
	begun := in
	begun.Began, begun.Last, begun.Over, begun.Mode = in.Now.Add(-time.Hour), map[string]uint64{"canary": 0}, sets.New("canary", "rest"), rollout.Following
	if got := members(plan.Waves(begun, "platform-3", strategy)); !equal(got, want) {
		t.Errorf("the waves of a change after a rollout are %v, not %v", got, want)
	}
	failed := slices.IndexFunc(in.Clusters, func(c rollout.Cluster) bool { return !slices.Contains(want[0], c.Name) })
	in.Clusters[failed].State, in.Clusters[failed].Assigned = addonsv1.StackFailed, "platform-2"
	if got := members(plan.Waves(in, "platform-3", strategy)); !slices.Contains(got[0], in.Clusters[failed].Name) {
		t.Errorf("a cluster that failed at the revision before isn't in the first wave: %v", got)
	}
}
