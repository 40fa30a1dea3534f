// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/object"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// An object may be in a release that is about to go, and in the one that is being
// installed. It goes over from the one to the other: it is never deleted.

// takeOver makes an object of a leaving release ours to apply.
func (r *run) takeOver(ctx context.Context, live *metav1.PartialObjectMetadata, key record.ObjectKey) error {
	from := object.OwnerOf(&live.ObjectMeta)
	if from != r.release && live.DeletionTimestamp != nil {
		return object.Postpone(key, fmt.Sprintf("it was deleted with add-on %s, and isn't gone yet", from))
	}
	if from != r.release {
		if err := r.markTransferred(ctx, from); err != nil {
			return err
		}
	}
	return r.applier.TakeFields(ctx, live, object.ManagersAmong(&live.ObjectMeta, r.want.Leaving)...)
}

// markTransferred notes in the newest record of a release that something of it has another
// owner now. Should the release be wanted again, it isn't as it was installed: its
// objects are looked at and applied anew. That is noted first, as a crash may follow.
func (r *run) markTransferred(ctx context.Context, from Release) error {
	r.noting.Lock()
	defer r.noting.Unlock()
	if r.transferred[from] {
		return nil
	}
	store := r.d.storeOf(r.t, from)
	rec, err := store.Newest(ctx)
	if err != nil {
		return err
	}
	if rec != nil && !rec.Transferred() {
		rec.MarkTransferred()
		r.wrote.Store(true)
		if err := store.Update(ctx, rec); err != nil {
			return err
		}
	}
	if r.transferred == nil {
		r.transferred = map[Release]bool{}
	}
	r.transferred[from] = true
	return nil
}

// Keys returns the keys of a rendering's objects, as a release would have them in the
// cluster.
func (d *Deliverer) Keys(t Target, release Release, in *Rendering) ([]ObjectKey, error) {
	r := &run{d: d, t: t, release: release, scope: &object.Scope{Release: release, Mapper: t.Client.RESTMapper()}}
	crds, objects, err := r.prepareBoth(in.CRDs, in.Objects)
	var keys []ObjectKey
	for _, o := range slices.Concat(crds, objects) {
		keys = append(keys, record.KeyOf(o))
	}
	return keys, err
}

// removalHooks runs the hooks of a removal. They prepare for the end of what the
// add-on has, or clear up after it. So they aren't run if something of it lives on in
// another add-on: the Job that is to uninstall a storage system would do so.
func (r *run) removalHooks(ctx context.Context, event helmrelease.HookEvent) error {
	if len(hooksFor(r.rec.Helm.Hooks, event)) == 0 || slices.Contains(r.rec.State.EventsDone, event.String()) {
		return nil
	}
	object, newOwner, err := r.newOwner(ctx)
	if err != nil {
		return err
	}
	if newOwner == (Release{}) {
		return r.runHooks(ctx, event)
	}
	r.rec.State.Notes = append(r.rec.State.Notes, fmt.Sprintf("%s hooks weren't run, as %s belongs to add-on %s now", event, object, newOwner))
	r.rec.State.EventsDone = append(r.rec.State.EventsDone, event.String())
	return r.update(ctx)
}

// Holds returns the objects that a release has by its newest record; false if that
// doesn't say.
func (d *Deliverer) Holds(ctx context.Context, t Target, release Release) ([]ObjectKey, bool, error) {
	rec, err := d.storeOf(t, release).Newest(ctx)
	if _, damaged := errors.AsType[*record.UnreadableError](err); damaged || rec == nil && err == nil {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("add-on %s: %w", release, err)
	}
	r := &run{d: d, t: t, release: release, scope: &object.Scope{Release: release, Mapper: t.Client.RESTMapper()}}
	inventory, err := r.scope.InventoryOf(rec)
	if err != nil {
		return nil, false, fmt.Errorf("add-on %s: %w", release, err)
	}
	keys := make([]ObjectKey, 0, len(inventory))
	for _, e := range inventory {
		if !e.Shared {
			keys = append(keys, e.Key())
		}
	}
	return keys, true, nil
}

// newOwner returns an object of the inventory that now belongs to another add-on, one that
// stays, and that add-on.
func (r *run) newOwner(ctx context.Context) (record.ObjectKey, Release, error) {
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return record.ObjectKey{}, Release{}, err
	}
	for _, e := range inventory {
		if e.Shared {
			continue
		}
		live, err := r.scope.Metadata(ctx, r.t.own(), e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return record.ObjectKey{}, Release{}, r.failureOf(e.Key(), err)
		}
		if owner := object.OwnerOf(&live.ObjectMeta); owner != r.release && owner != (Release{}) && !e.CRD && !slices.Contains(r.leaving, owner) {
			return e.Key(), owner, nil
		}
	}
	return record.ObjectKey{}, Release{}, nil
}
