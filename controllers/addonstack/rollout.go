// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// rollouts bring a revision to clusters step by step: they gather, have package rollout decide, note on revisions how far
// these are, give turns to clusters, and report.
type rollouts struct{ *Reconciler }

// gathered is all that is known of one rollout.
type gathered struct {
	*standing.Rollout
	clusters *selectedClusters
}

// bring returns the clusters that the target selects, and when to look again.
func (r rollouts) bring(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) ([]standing.Cluster, time.Duration, error) {
	q, err := r.gather(ctx, s, revisions)
	if err != nil {
		return nil, 0, err
	}
	in, d, err := r.decide(ctx, q)
	if err == nil && d.Reject { // at once back
		r.event(s, corev1.EventTypeWarning, "RevisionRejected", "RollOut", fmt.Sprintf("%s is not rolled out any more: %s", q.Revision(), d.Failure()))
		q.Refresh()
		in, d, err = r.decide(ctx, q)
	}
	if err != nil {
		return nil, 0, err
	}
	q.Turns.Insert(d.Start...)
	r.Turns.Give(client.ObjectKeyFromObject(s), q.Revision(), q.Turns)
	r.report(q, in, d)
	again := r.count(s, q.clusters, func(ca *addonsv1.ClusterAddon) (string, []addonsv1.Addon) {
		revision := q.Assigned(ca)
		return revision, q.Addons(revision)
	})
	s.Status.Clusters.Updated = new(int32)
	for _, wave := range s.Status.Rollout.Waves {
		*s.Status.Clusters.Updated += wave.Updated
	}
	return q.clusters.selected, retry.Sooner(again, d.Next.Sub(in.Now)), nil
}

// gather reads the clusters. Turns that the cache shows as taken are left out.
func (r rollouts) gather(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*gathered, error) {
	if err := r.noteReplaced(ctx, revisions); err != nil {
		return nil, err
	}
	q := &gathered{Rollout: standing.RolloutOf(s, revisions)}
	if q.Target >= 0 && q.Marked[q.Target].Cause == "" { // its marks are of an older program, or of an attempt that is over
		if err := r.annotate(ctx, &revisions[q.Target], func(is *appsv1.ControllerRevision) { rollout.Begin(is, rollout.Edited, false) }); err != nil {
			return nil, err
		}
		q.Refresh()
	}
	spec, err := stack.SpecOf(&revisions[max(q.Target, 0)])
	if err != nil {
		return nil, err
	}
	if q.clusters, err = r.selectedBy(ctx, s, spec); err != nil {
		return nil, err
	}
	given, err := r.given(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, is := range q.clusters.selected {
		if ca := is.ClusterAddon; given.Has(ca.Name) && q.Assigned(ca) != q.Aim(ca) {
			q.Turns.Insert(ca.Name)
		}
	}
	return q, nil
}

// given returns the clusters that were given a turn. A process that decides for the first time asks the API server for
// those of the process before: the cache may be behind.
func (r rollouts) given(ctx context.Context, q *gathered) (sets.Set[string], error) {
	m := r.memoryOf(q.Stack)
	if m.knowsTurns {
		return r.Turns.To(client.ObjectKeyFromObject(q.Stack), q.Revision()), nil
	}
	all := &addonsv1.ClusterAddonList{}
	if err := r.APIReader.List(ctx, all, client.InNamespace(q.Stack.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", q.Stack.Namespace, err)
	}
	given := sets.New[string]()
	for i := range all.Items {
		if q.Target >= 0 && q.Assigned(&all.Items[i]) == q.Aim(&all.Items[i]) {
			given.Insert(all.Items[i].Name)
		}
	}
	m.knowsTurns = true
	return given, nil
}

// decide decides, and notes on the target what a later decision has to know, before anything is done by it. The order doesn't
// matter to a process that ends in between: it decides the same.
func (r rollouts) decide(ctx context.Context, q *gathered) (rollout.Input, rollout.Decision, error) {
	var others []addonsv1.StackInstance
	if r.shares(q.Stack) {
		others = withInstance(slices.Clone(q.Stack.Status.Instances), r.WatchFilter, nil)
	}
	in := q.Input(r.Clock.Now(), r.WatchFilter, others, q.clusters.selected)
	d := rollout.Decide(in)
	if q.Target < 0 {
		return in, d, nil
	}
	return in, d, r.annotate(ctx, &q.Revisions[q.Target], func(is *appsv1.ControllerRevision) {
		rollout.Mark(is, d, rollout.WavesOf(q.Stack.Spec.Rollout), r.WatchFilter, in.Now)
	})
}

// atOnce notes of a stack without a rollout when all clusters were seen Ready at its newest revision: a rollout that comes
// later can go back to it. It returns when to look again, 0 for never.
func (r rollouts) atOnce(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, clusters *selectedClusters) (time.Duration, error) {
	attempt := rollout.AttemptOf(&revisions[0])
	if attempt.Unstaged && !attempt.Completed.IsZero() {
		return 0, nil
	}
	q := standing.RolloutOf(s, revisions[:1])
	in := q.Input(r.Clock.Now(), r.WatchFilter, nil, clusters.selected)
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
func (r rollouts) othersAreReady(s *addonsv1.AddonStack, revision string) bool {
	return !r.shares(s) || !slices.ContainsFunc(s.Status.Instances, func(i addonsv1.StackInstance) bool {
		return i.WatchFilter != r.WatchFilter && (i.LatestRevision != revision || i.Clusters != nil && i.Clusters.Ready < i.Clusters.Total)
	})
}

// annotate changes annotations of a revision, if the change makes a difference.
func (r rollouts) annotate(ctx context.Context, revision *appsv1.ControllerRevision, change func(*appsv1.ControllerRevision)) error {
	before := revision.DeepCopy()
	if change(revision); maps.Equal(before.Annotations, revision.Annotations) {
		return nil
	}
	if err := r.Client.Patch(ctx, revision, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("noting on revision %s how far it is: %w", revision.Name, err)
	}
	return nil
}
