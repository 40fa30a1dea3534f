// SPDX-License-Identifier: Apache-2.0

// Package rollouts brings revisions of AddonStacks to their clusters, step by step.
package rollouts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/clusters"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// Rollouts bring a revision to clusters step by step: they gather, have package rollout decide, note on revisions how far
// these are, give turns to clusters, and report.
type Rollouts struct {
	Client client.Client
	// APIReader reads turns that a previous process gave.
	APIReader client.Reader
	Members   *member.Inventory
	// Values tells the digests of values that revisions pin.
	Values *valuesource.Reader
	// Turns are given to clusters.
	Turns  *management.Turns
	Clock  clock.PassiveClock
	Events report.Events
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
}

// Memory of a stack's rollout.
//
// Key: the stack.
// Bound: one rollout status.
// Lost with it: the API server is asked for turns once, and no event tells how a rollout of several instances differs from before.
type Memory struct {
	// knowsTurns says that turns of an earlier process were looked for.
	knowsTurns bool
	// reported is the rollout of the last events, nil before the first.
	reported *addonsv1.RolloutStatus
}

// gathered is all that is known of one rollout.
type gathered struct {
	*standing.Rollout
	memory   *Memory
	clusters *clusters.Selected
}

// Bring returns the clusters that the target selects, which revision each of them is to have, and when to look again, 0 for never.
func (r Rollouts) Bring(ctx context.Context, s *addonsv1.AddonStack, m *Memory, revisions []appsv1.ControllerRevision) (*clusters.Selected, clusters.Wanted, time.Duration, error) {
	q, err := r.gather(ctx, s, m, revisions)
	if err != nil {
		return nil, nil, 0, err
	}
	in, d, err := r.decide(ctx, q)
	if err == nil && d.Reject { // at once back
		r.Events.Send(s, corev1.EventTypeWarning, "RevisionRejected", "RollOut", fmt.Sprintf("%s is not rolled out any more: %s", q.Revision(), d.Failure()))
		q.Refresh()
		in, d, err = r.decide(ctx, q)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	if d.Phase == addonsv1.RolloutWaitingForApproval {
		if in.Plan, err = r.planned(ctx, q); err != nil {
			return nil, nil, 0, err
		}
	}
	q.Turns.Insert(d.Start...)
	r.Turns.Give(client.ObjectKeyFromObject(s), q.Revision(), q.Turns)
	r.Report(q.Rollout, q.memory, in, d)
	wanted := func(ca *addonsv1.ClusterAddon) (string, []addonsv1.Addon) {
		revision := q.Assigned(ca)
		return revision, q.Addons(revision)
	}
	return q.clusters, wanted, d.Next.Sub(in.Now), nil
}

// gather reads the clusters. Turns that the cache shows as taken are left out.
func (r Rollouts) gather(ctx context.Context, s *addonsv1.AddonStack, m *Memory, revisions []appsv1.ControllerRevision) (*gathered, error) {
	if err := r.noteReplaced(ctx, revisions); err != nil {
		return nil, err
	}
	q := &gathered{Rollout: standing.RolloutOf(s, revisions), memory: m}
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
	if q.clusters, err = clusters.Select(ctx, r.Client, r.Members, s.Namespace, spec); err != nil {
		return nil, err
	}
	given, err := r.given(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, is := range q.clusters.Clusters {
		if ca := is.ClusterAddon; given.Has(ca.Name) && q.Assigned(ca) != q.Aim(ca) {
			q.Turns.Insert(ca.Name)
		}
	}
	return q, nil
}

// given returns the clusters that were given a turn. A process that decides for the first time asks the API server for
// those of the process before: the cache may be behind.
func (r Rollouts) given(ctx context.Context, q *gathered) (sets.Set[string], error) {
	if q.memory.knowsTurns {
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
	q.memory.knowsTurns = true
	return given, nil
}

// decide decides, and notes on the target what a later decision has to know, before anything is done by it. The order doesn't
// matter to a process that ends in between: it decides the same.
func (r Rollouts) decide(ctx context.Context, q *gathered) (rollout.Input, rollout.Decision, error) {
	var others []addonsv1.StackInstance
	if sharing.IsShared(q.Stack, r.WatchFilter) {
		others = sharing.WithInstance(slices.Clone(q.Stack.Status.Instances), r.WatchFilter, nil)
	}
	in := q.Input(r.Clock.Now(), r.WatchFilter, others, q.clusters.Clusters)
	d := rollout.Decide(in)
	if q.Target < 0 {
		return in, d, nil
	}
	return in, d, r.annotate(ctx, &q.Revisions[q.Target], func(is *appsv1.ControllerRevision) {
		rollout.Mark(is, d, rollout.WavesOf(q.Stack.Spec.Rollout), r.WatchFilter, in.Now)
	})
}

// annotate changes annotations of a revision, if the change makes a difference.
func (r Rollouts) annotate(ctx context.Context, revision *appsv1.ControllerRevision, change func(*appsv1.ControllerRevision)) error {
	before := revision.DeepCopy()
	if change(revision); maps.Equal(before.Annotations, revision.Annotations) {
		return nil
	}
	if err := r.Client.Patch(ctx, revision, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("noting on revision %s how far it is: %w", revision.Name, err)
	}
	return nil
}
