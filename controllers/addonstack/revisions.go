// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

const (
	// historyLimit is how many revisions are kept that no cluster runs, besides
	// the newest.
	historyLimit = 10

	// conflictDelay is how long the cache may take to show a write that won.
	conflictDelay = 100 * time.Millisecond
)

// snapshot keeps the spec as the newest revision, and names it in the status.
func (r *Reconciler) snapshot(ctx context.Context, s *addonsv1.AddonStack) error {
	all := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name}); err != nil {
		return err
	}
	revisions := stack.OwnRevisions(s, all.Items)
	next := int64(1)
	if len(revisions) > 0 {
		next = revisions[0].Revision + 1
	}
	wanted, err := stack.Snapshot(s, next)
	if err != nil {
		return err
	}
	s.Status.LatestRevision = wanted.Name

	known := find(revisions, wanted.Name)
	switch {
	case known == nil:
		if err := r.Client.Create(ctx, wanted); err != nil {
			return err
		}
		r.Recorder.Eventf(s, wanted, corev1.EventTypeNormal, "RevisionCreated", "Snapshot", "Kept spec as revision %d, %s", wanted.Revision, wanted.Name)
	case known.Revision != revisions[0].Revision:
		// The spec went back to an earlier one: that revision becomes the newest.
		before := known.DeepCopy()
		known.Revision = next
		if err := r.Client.Patch(ctx, known, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		r.Recorder.Eventf(s, known, corev1.EventTypeNormal, "RevisionReused", "Snapshot", "Went back to %s, now revision %d", known.Name, known.Revision)
	default:
		return r.syncLabels(ctx, known, wanted)
	}
	return r.trimHistory(ctx, s, revisions, wanted.Name)
}

// syncLabels carries a changed watch label over to the newest revision.
func (r *Reconciler) syncLabels(ctx context.Context, known, wanted *appsv1.ControllerRevision) error {
	same := len(known.Labels) == len(wanted.Labels)
	for key, value := range wanted.Labels {
		same = same && known.Labels[key] == value
	}
	if same {
		return nil
	}
	before := known.DeepCopy()
	known.Labels = wanted.Labels
	return r.Client.Patch(ctx, known, client.MergeFrom(before))
}

// trimHistory deletes the oldest revisions that no cluster runs.
func (r *Reconciler) trimHistory(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, newest string) error {
	if len(revisions) <= historyLimit {
		return nil
	}
	clusterAddons, err := r.clusterAddonsOf(ctx, s)
	if err != nil {
		return err
	}
	inUse := sets.New(newest)
	for i := range clusterAddons {
		inUse.Insert(revisionIn(&clusterAddons[i], s.Name))
	}
	kept := 0
	for i := range revisions {
		if inUse.Has(revisions[i].Name) {
			continue
		}
		if kept++; kept <= historyLimit {
			continue
		}
		if err := r.Client.Delete(ctx, &revisions[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func find(revisions []appsv1.ControllerRevision, name string) *appsv1.ControllerRevision {
	for i := range revisions {
		if revisions[i].Name == name {
			return &revisions[i]
		}
	}
	return nil
}
