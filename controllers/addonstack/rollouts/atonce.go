// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/clusters"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// AtOnce notes of a stack without a rollout when all clusters were seen Ready at its newest revision: a rollout that comes
// later can go back to it. It returns when to look again, 0 for never.
func (r Rollouts) AtOnce(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, of *clusters.Selected) (time.Duration, error) {
	attempt := rollout.AttemptOf(&revisions[0])
	if attempt.Unstaged && !attempt.Completed.IsZero() {
		return 0, nil
	}
	q := standing.RolloutOf(s, revisions[:1])
	in := q.Input(r.Clock.Now(), r.WatchFilter, nil, of.Clusters)
	in.Mode = rollout.AllAtOnce
	d := rollout.Decide(in)
	d.Completed = d.Completed && r.othersAreReady(s, revisions[0].Name)
	again := max(0, d.Next.Sub(in.Now))
	if attempt.Cause == "" && !d.Completed {
		return again, nil // an older program made it: nothing is known of it
	}
	return again, r.annotate(ctx, &revisions[0], func(is *appsv1.ControllerRevision) {
		if !attempt.Unstaged {
			rollout.EndStages(is)
		}
		rollout.Mark(is, rollout.Decision{Completed: d.Completed}, nil, r.WatchFilter, in.Now)
	})
}

// othersAreReady reports whether all clusters of other instances are Ready at a revision of a stack.
func (r Rollouts) othersAreReady(s *addonsv1.AddonStack, revision string) bool {
	return !sharing.IsShared(s, r.WatchFilter) || !slices.ContainsFunc(s.Status.Instances, func(i addonsv1.StackInstance) bool {
		return i.WatchFilter != r.WatchFilter && (i.LatestRevision != revision || i.Clusters != nil && i.Clusters.Ready < i.Clusters.Total)
	})
}
