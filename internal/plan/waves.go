// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// maxMembers is how many clusters of a wave are named (waves[].members, MaxItems).
const maxMembers = 500

// Waves returns the waves in which a revision reaches clusters. The input is that of the rollout as it is. If that is of another
// revision, the waves are those of a rollout with the strategy which begins now.
func Waves(in rollout.Input, revision string, strategy rollout.Strategy) []addonsv1.PlanWave {
	if in.Target != revision {
		clusters := slices.Clone(in.Clusters)
		for i := range clusters { // the target that is replaced may not be completed
			clusters[i].Unfinished = clusters[i].Unfinished || clusters[i].Assigned == in.Target && in.Mode != rollout.Following
		}
		in = rollout.Input{Now: in.Now, Target: revision, Strategy: strategy, Clusters: clusters, Others: in.Others, WatchFilter: in.WatchFilter}
	}
	d := rollout.Decide(in)
	waves := make([]addonsv1.PlanWave, 0, len(d.Waves))
	for i, w := range d.Waves {
		is := addonsv1.PlanWave{Name: w.Name, Total: int32(w.Total)}
		for _, m := range d.Members[i][:min(len(d.Members[i]), maxMembers)] {
			is.Members = append(is.Members, m.Name)
		}
		slices.Sort(is.Members)
		waves = append(waves, is)
	}
	return waves
}
