// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// snapshot keeps the spec, with the versions that it follows and what its bundle adds, as the newest
// revision. If there is one of this generation already, that takes no request. While the spec waits for
// versions or its bundle, it isn't kept.
func (r revisionHistory) snapshot(
	ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision,
) (*resolution, error) {
	f, err := polling(r).follow(ctx, s, revisions)
	if err != nil {
		return nil, err
	}
	var e *expansion
	if source := f.of(addonsv1.FollowedSource); source == nil || !source.waits() {
		if e, err = bundles(r).expand(ctx, s, f, revisions); err != nil {
			failed, ok := errors.AsType[*failure.Error](err)
			if !ok {
				return nil, err
			}
			f.bundle, f.again = failed, retry.Sooner(triedAgainIn(failed), f.again)
		}
	}
	if f.waits() {
		r.reportValid(s, e, f.bundle)
		return f, nil
	}
	expanded, pins := e.of(s), f.pins()
	isNew, err := r.isNew(ctx, revisions, expanded, pins)
	if err != nil {
		return nil, err
	}
	if isNew {
		if revisions, err = r.keepRevision(ctx, s, e, pins); err != nil {
			return nil, err
		}
	}
	s.Status.LatestRevision = revisions[0].Name
	kept, unknown, err := stack.Read(&revisions[0])
	if err == nil && len(unknown) > 0 { // a newer instance made it
		err = unknownFields(unknown)
	}
	if err != nil {
		return nil, err
	}
	r.reportValid(s, e, nil)
	s.Status.Following = followingOf(s, stack.PinsOf(&s.Spec, kept), revisions[0].CreationTimestamp, isNew, f, r.Clock.Now())
	f.kept, f.revisions = pins.Into(&expanded.Spec), revisions
	if !isNew {
		return f, nil
	}
	if err := r.syncLabels(ctx, s, revisions); err != nil {
		return nil, err
	}
	if err := r.trimHistory(ctx, s, revisions); err != nil {
		logf.FromContext(ctx).Error(err, "Old revisions are left until there is another one")
	}
	return f, nil
}

// isNew reports whether the newest revision isn't of the stack with these pins, and its inputs as they are now.
func (r revisionHistory) isNew(ctx context.Context, revisions []appsv1.ControllerRevision, expanded *addonsv1.AddonStack, pins stack.Pins) (bool, error) {
	inputs, err := inputsOf(ctx, expanded, r.Values.Digest)
	return len(revisions) == 0 || !stack.IsOf(&revisions[0], expanded, pins, inputs), err
}

// knownRevisions returns the revisions of the stack, the newest first. Revisions with a previous
// watch label of the stack aren't in the cache. They are read from the API server then.
func (r revisionHistory) knownRevisions(ctx context.Context, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	revisions, err := r.revisions(ctx, r.Client, s)
	if err == nil && len(revisions) == 0 && s.Status.LatestRevision != "" {
		revisions, err = r.revisions(ctx, r.APIReader, s)
	}
	if err != nil {
		return nil, err
	}
	return revisions, r.syncLabels(ctx, s, revisions)
}

// revisions lists the revisions of a stack, the newest first.
func (r revisionHistory) revisions(ctx context.Context, from client.Reader, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	all := &appsv1.ControllerRevisionList{}
	if err := from.List(ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels{addonsv1.StackNameLabel: s.Name}); err != nil {
		return nil, fmt.Errorf("listing the revisions of AddonStack %s: %w", s.Name, err)
	}
	return stack.OwnRevisions(s, all.Items), nil
}

// syncLabels carries a changed watch label over to the revisions, the newest first. It ends when
// the stack has another label again: then another instance labels them.
func (r revisionHistory) syncLabels(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) error {
	for i := range revisions {
		before := revisions[i].DeepCopy()
		if !stack.SyncLabel(&revisions[i], s) {
			continue
		}
		if err := r.sameLabel(ctx, s); err != nil {
			return err
		}
		err := r.Client.Patch(ctx, &revisions[i], client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling revision %s: %w", revisions[i].Name, err)
		}
	}
	return nil
}

// sameLabel fails with errStale if the cache shows the stack with another watch label, or not at all.
func (r revisionHistory) sameLabel(ctx context.Context, s *addonsv1.AddonStack) error {
	now := &addonsv1.AddonStack{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s), now); client.IgnoreNotFound(err) != nil {
		return err
	}
	if now.UID != s.UID || now.Labels[clusterv1.WatchLabel] != s.Labels[clusterv1.WatchLabel] {
		return errStale
	}
	return nil
}

// historyLimit is how many revisions are kept that no cluster runs, besides the newest.
const historyLimit = 10

// trimHistory deletes the oldest revisions that no cluster runs. The cache doesn't have the
// revisions that clusters of other filters run.
func (r revisionHistory) trimHistory(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) error {
	if len(revisions) <= historyLimit+1 {
		return nil
	}
	reader := client.Reader(r.Client)
	if r.shares(s) {
		reader = r.APIReader
	}
	all := &addonsv1.ClusterAddonList{}
	if err := reader.List(ctx, all, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("listing ClusterAddons of namespace %s: %w", s.Namespace, err)
	}
	inUse := sets.New[string]()
	for i := range all.Items {
		inUse.Insert(stack.AssignedRevision(all.Items[i].Spec.Stacks, s.Name))
		inUse.Insert(stack.StatusOf(&all.Items[i].Status, s.Name).Previous)
	}
	marked := rollout.Revisions(revisions)
	target := rollout.Target(marked)
	for _, at := range []int{target, rollout.Previous(marked, target), rollout.Entry(marked, target)} {
		if at >= 0 {
			inUse.Insert(revisions[at].Name) // clusters go there, or back
		}
	}
	surplus := slices.DeleteFunc(slices.Clone(revisions[1:]), func(r appsv1.ControllerRevision) bool { return inUse.Has(r.Name) })
	for _, revision := range surplus[min(historyLimit, len(surplus)):] {
		// Another instance may go back to it at this moment.
		asSeen := client.Preconditions{UID: &revision.UID, ResourceVersion: &revision.ResourceVersion}
		if err := r.Client.Delete(ctx, &revision, asSeen); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting revision %s: %w", revision.Name, err)
		}
	}
	return nil
}
