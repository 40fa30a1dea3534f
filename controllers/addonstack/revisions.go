// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// historyLimit is how many revisions are kept that no cluster runs, besides the
// newest.
const historyLimit = 10

// snapshot keeps the spec as the newest revision, and names it in the status.
func (r *Reconciler) snapshot(ctx context.Context, s *addonsv1.AddonStack) error {
	revisions, err := r.revisions(ctx, s)
	if err != nil {
		return err
	}
	next := int64(1)
	if len(revisions) > 0 {
		next = revisions[0].Revision + 1
	}
	wanted, err := stack.Snapshot(s, next)
	if err != nil {
		return err
	}
	if err := r.keep(ctx, s, revisions, wanted); err != nil {
		return fmt.Errorf("keeping revision %s: %w", wanted.Name, err)
	}
	s.Status.LatestRevision = wanted.Name
	return r.trimHistory(ctx, s, revisions, wanted.Name)
}

// keep makes sure that the wanted revision is there, and the newest.
func (r *Reconciler) keep(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision, wanted *appsv1.ControllerRevision) error {
	known := find(revisions, wanted.Name)
	if known == nil {
		return r.create(ctx, s, wanted)
	}
	isNewest := revisions[0].Name == known.Name && (len(revisions) == 1 || revisions[1].Revision != known.Revision)
	if isNewest {
		return r.syncLabels(ctx, known, wanted)
	}
	// The spec went back to an earlier one: that revision becomes the newest.
	before := known.DeepCopy()
	known.Revision = wanted.Revision
	if err := r.Client.Patch(ctx, known, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.Recorder.Eventf(s, known, corev1.EventTypeNormal, "RevisionReused", "Snapshot", "Went back to %s, now revision %d", known.Name, known.Revision)
	return nil
}

// create makes the revision. One that is there, unseen by the cache, came into
// the scope of this instance with its stack, by relabelling.
func (r *Reconciler) create(ctx context.Context, s *addonsv1.AddonStack, wanted *appsv1.ControllerRevision) error {
	err := r.Client.Create(ctx, wanted.DeepCopy())
	if err == nil {
		r.Recorder.Eventf(s, wanted, corev1.EventTypeNormal, "RevisionCreated", "Snapshot", "Kept spec as revision %d, %s", wanted.Revision, wanted.Name)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	known := &appsv1.ControllerRevision{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), known); err != nil {
		return err
	}
	if !metav1.IsControlledBy(known, s) {
		return err // a stack of this name that is gone had it; it goes, too
	}
	return r.syncLabels(ctx, known, wanted)
}

func (r *Reconciler) revisions(ctx context.Context, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	all := &appsv1.ControllerRevisionList{}
	if err := r.Client.List(ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("listing the revisions of AddonStack %s: %w", s.Name, err)
	}
	return stack.OwnRevisions(s, all.Items), nil
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
