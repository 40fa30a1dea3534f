// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// rollouts bring a revision to clusters step by step: they gather, have package rollout decide, note on revisions how far
// these are, give turns to clusters, and report.
type rollouts struct{ *Reconciler }

// gathered is all that is known of one rollout.
type gathered struct {
	stack     *addonsv1.AddonStack
	revisions []appsv1.ControllerRevision // the newest first
	marked    []rollout.Revision
	target    int // in revisions, -1 for none
	clusters  *selectedClusters
	turns     sets.Set[string]            // to the target, given and maybe not taken yet
	addons    map[string][]addonsv1.Addon // by revision, as far as they were read
}

// revision returns the name of the target, "" for none.
func (q *gathered) revision() string {
	if q.target < 0 {
		return ""
	}
	return q.revisions[q.target].Name
}

// assigned returns the revision that a cluster is to have now, with the turn that it was given.
func (q *gathered) assigned(ca *addonsv1.ClusterAddon) string {
	if q.turns.Has(ca.Name) {
		return q.revision()
	}
	return stack.AssignedRevision(ca.Spec.Stacks, q.stack.Name)
}

// bring returns the clusters that the target selects, and when to look again.
func (r rollouts) bring(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) ([]*addonsv1.ClusterAddon, time.Duration, error) {
	q, err := r.gather(ctx, s, revisions)
	if err != nil {
		return nil, 0, err
	}
	in := r.input(q)
	d := rollout.Decide(in)
	if err := r.note(ctx, q, d); err != nil {
		return nil, 0, err
	}
	for _, name := range d.Start {
		q.turns.Insert(name)
	}
	r.Turns.Give(client.ObjectKeyFromObject(s), q.revision(), q.turns)
	r.report(q, in, d)
	again := r.count(s, q.clusters, func(ca *addonsv1.ClusterAddon) (string, []addonsv1.Addon) {
		revision := q.assigned(ca)
		return revision, q.addonsOf(revision)
	})
	return q.clusters.selected, retry.Sooner(again, d.Next.Sub(in.Now)), nil
}

// gather reads the clusters. Turns that the cache shows as taken are left out.
func (r rollouts) gather(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) (*gathered, error) {
	if err := r.noteReplaced(ctx, revisions); err != nil {
		return nil, err
	}
	q := &gathered{stack: s, revisions: revisions, marked: rollout.Revisions(revisions), turns: sets.New[string]()}
	q.target = rollout.Target(q.marked)
	spec, err := stack.SpecOf(&revisions[max(q.target, 0)])
	if err != nil {
		return nil, err
	}
	q.addons = map[string][]addonsv1.Addon{q.revision(): spec.Addons}
	if q.clusters, err = r.selectedBy(ctx, s, spec); err != nil {
		return nil, err
	}
	given, err := r.given(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, ca := range q.clusters.selected {
		if given.Has(ca.Name) && q.assigned(ca) != q.revision() {
			q.turns.Insert(ca.Name)
		}
	}
	return q, nil
}

// given returns the clusters that were given a turn to the target. A process that decides for the first time asks the
// API server for those of the process before: the cache may be behind.
func (r rollouts) given(ctx context.Context, q *gathered) (sets.Set[string], error) {
	m := r.memoryOf(q.stack)
	if m.knowsTurns {
		return r.Turns.To(client.ObjectKeyFromObject(q.stack), q.revision()), nil
	}
	all := &addonsv1.ClusterAddonList{}
	if err := r.APIReader.List(ctx, all, client.InNamespace(q.stack.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ClusterAddons of namespace %s: %w", q.stack.Namespace, err)
	}
	given := sets.New[string]()
	for i := range all.Items {
		if q.target >= 0 && stack.AssignedRevision(all.Items[i].Spec.Stacks, q.stack.Name) == q.revision() {
			given.Insert(all.Items[i].Name)
		}
	}
	m.knowsTurns = true
	return given, nil
}

// addonsOf returns the add-ons of a revision, none if it can't be read.
func (q *gathered) addonsOf(revision string) []addonsv1.Addon {
	if _, isRead := q.addons[revision]; !isRead {
		q.addons[revision] = nil
		if spec := stack.SpecAt(q.revisions, revision); spec != nil {
			q.addons[revision] = spec.Addons
		}
	}
	return q.addons[revision]
}

// note writes on revisions how far they are, before anything is done by it. The order doesn't matter to a process that
// ends in between: it decides the same.
func (r rollouts) note(ctx context.Context, q *gathered, d rollout.Decision) error {
	if q.target < 0 {
		return nil
	}
	now := r.Clock.Now().UTC().Format(time.RFC3339)
	for i := range q.marked { // what an earlier time without a rollout completed
		if q.marked[i].Completed {
			if err := r.mark(ctx, q, i, addonsv1.RolloutCompletedAnnotation, now); err != nil {
				return err
			}
		}
	}
	is := q.marked[q.target]
	begins := len(d.Start) > 0 || slices.ContainsFunc(d.Waves, func(c rollout.Count) bool { return c.Updated > 0 })
	switch {
	case d.Reject:
		if err := r.mark(ctx, q, q.target, addonsv1.RolloutRejectedAnnotation, d.Failure()); err != nil {
			return err
		}
		r.event(q.stack, corev1.EventTypeWarning, "RevisionRejected", "RollOut", fmt.Sprintf("%s is not rolled out any more: %s", q.revision(), d.Failure()))
	case is.Completed:
	case d.Phase == addonsv1.RolloutCompleted:
		return r.mark(ctx, q, q.target, addonsv1.RolloutCompletedAnnotation, now)
	case begins && !is.Started:
		return r.mark(ctx, q, q.target, addonsv1.RolloutStartedAnnotation, now)
	}
	return nil
}

// mark sets an annotation of a revision, if it has none of the kind.
func (r rollouts) mark(ctx context.Context, q *gathered, at int, annotation, value string) error {
	revision := &q.revisions[at]
	if _, has := revision.Annotations[annotation]; has {
		return nil
	}
	return r.annotate(ctx, revision, annotation, value)
}

// annotate sets an annotation of a revision, or takes it off if it is to be empty.
func (r rollouts) annotate(ctx context.Context, revision *appsv1.ControllerRevision, annotation, value string) error {
	before := revision.DeepCopy()
	if metav1.SetMetaDataAnnotation(&revision.ObjectMeta, annotation, value); value == "" {
		delete(revision.Annotations, annotation)
	}
	if err := r.Client.Patch(ctx, revision, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("noting %s on revision %s: %w", annotation, revision.Name, err)
	}
	return nil
}
