// SPDX-License-Identifier: Apache-2.0

// Package history keeps the valid specs of AddonStacks as ControllerRevisions.
package history

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// History keeps specs of stacks as revisions.
type History struct {
	Client client.Client
	// APIReader reads revisions with a previous watch label, and those that another instance wrote a moment ago.
	APIReader client.Reader
	// Values tells the digests of values that revisions pin.
	Values *valuesource.Reader
	Events report.Events
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
	Clock       clock.PassiveClock
}

// ErrStale is a conflict: the cache is behind.
var ErrStale = apierrors.NewConflict(addonsv1.GroupVersion.WithResource("addonstacks").GroupResource(), "", errors.New("the cache is behind"))

// Kept is a spec in force, and its revisions.
type Kept struct {
	Spec *addonsv1.AddonStackSpec // in force, with its versions and what its bundle adds
	// Revisions of the stack, the newest first, which keeps the spec.
	Revisions []appsv1.ControllerRevision
	// Pins are the versions that the newest revision has.
	Pins  stack.Pins
	IsNew bool // this call made the revision the newest
}

// Keep keeps an expanded spec with its versions as the newest revision. If there is one of this generation already, that takes no
// request. It sets status.latestRevision and status.history.
func (h History) Keep(ctx context.Context, s, expanded *addonsv1.AddonStack, pins stack.Pins, revisions []appsv1.ControllerRevision) (*Kept, error) {
	isNew, err := h.isNew(ctx, revisions, expanded, pins)
	if err != nil {
		return nil, err
	}
	if isNew {
		if revisions, err = h.keep(ctx, s, expanded, pins); err != nil {
			return nil, err
		}
	}
	h.noteChange(s, revisions, isNew)
	s.Status.LatestRevision = revisions[0].Name
	kept, unknown, err := stack.Read(&revisions[0])
	if err == nil && len(unknown) > 0 { // a newer instance made it
		err = unknownFields(unknown)
	}
	if err != nil {
		return nil, err
	}
	is := &Kept{Spec: pins.Into(&expanded.Spec), Revisions: revisions, Pins: stack.PinsOf(&s.Spec, kept), IsNew: isNew}
	if !isNew {
		return is, nil
	}
	if err := h.syncLabels(ctx, s, revisions); err != nil {
		return nil, err
	}
	if err := h.Trim(ctx, s, revisions); err != nil {
		logf.FromContext(ctx).Error(err, "Old revisions are left until there is another one")
	}
	return is, nil
}

// isNew reports whether the newest revision isn't of the stack with these pins, and its inputs as they are now.
func (h History) isNew(ctx context.Context, revisions []appsv1.ControllerRevision, expanded *addonsv1.AddonStack, pins stack.Pins) (bool, error) {
	inputs, err := inputsOf(ctx, expanded, h.Values.Digest)
	return len(revisions) == 0 || !stack.IsOf(&revisions[0], expanded, pins, inputs), err
}

// Known returns the revisions of the stack, the newest first. Revisions with a previous
// watch label of the stack aren't in the cache. They are read from the API server then.
func (h History) Known(ctx context.Context, s *addonsv1.AddonStack) ([]appsv1.ControllerRevision, error) {
	revisions, err := management.Revisions(ctx, h.Client, s)
	if err == nil && len(revisions) == 0 && s.Status.LatestRevision != "" {
		revisions, err = management.Revisions(ctx, h.APIReader, s)
	}
	if err != nil {
		return nil, err
	}
	return revisions, h.syncLabels(ctx, s, revisions)
}

// syncLabels carries a changed watch label over to the revisions, the newest first. It ends when
// the stack has another label again: then another instance labels them.
func (h History) syncLabels(ctx context.Context, s *addonsv1.AddonStack, revisions []appsv1.ControllerRevision) error {
	for i := range revisions {
		before := revisions[i].DeepCopy()
		if !stack.SyncLabel(&revisions[i], s) {
			continue
		}
		if err := h.sameLabel(ctx, s); err != nil {
			return err
		}
		err := h.Client.Patch(ctx, &revisions[i], client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling revision %s: %w", revisions[i].Name, err)
		}
	}
	return nil
}

// sameLabel fails with ErrStale if the cache shows the stack with another watch label, or not at all.
func (h History) sameLabel(ctx context.Context, s *addonsv1.AddonStack) error {
	now := &addonsv1.AddonStack{}
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(s), now); client.IgnoreNotFound(err) != nil {
		return err
	}
	if now.UID != s.UID || now.Labels[clusterv1.WatchLabel] != s.Labels[clusterv1.WatchLabel] {
		return ErrStale
	}
	return nil
}
