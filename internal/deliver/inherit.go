// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/generated"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// inherit returns the inventory and the generated values that the new revision
// takes over. The newest record's inventory contains those of all before it,
// unless Helm wrote it: then what our last one had is still to be managed.
func (r revisionMaker) inherit(ctx context.Context) ([]record.Entry, map[string]string, error) {
	var inventory []record.Entry
	for _, s := range r.records {
		if s.Status == string(helmcommon.StatusUninstalled) {
			break
		}
		rec, err := r.load(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		entries, err := r.scope.InventoryOf(rec)
		if err != nil {
			return nil, nil, err
		}
		if !r.believes(rec) {
			for i := range entries { // anybody may have written them
				entries[i].UID, entries[i].Fields, entries[i].Unproven = "", 0, true
			}
		}
		inventory = record.Union(entries, inventory)
		if s.Complete {
			return inventory, rec.State.Generated, nil
		}
		r.previous = cmp.Or(r.previous, rec)
		if !s.Owned {
			break // what Helm did before its newest revision is over
		}
	}
	if len(inventory) > 0 || record.Installed(r.records) {
		return inventory, nil, nil
	}
	inventory, err := r.inheritRelease(ctx)
	return inventory, nil, err
}

// A release of another name, or with its record in another namespace, is taken over as one of
// the add-on's own name is: the first revision begins with its objects. Its record is deleted when
// that revision has them all, as `helm uninstall` would delete them by it.

// inheritRelease returns the objects of the release that the add-on is to take over, nil if
// there is none. Only an add-on without a record of its own asks.
func (r revisionMaker) inheritRelease(ctx context.Context) ([]record.Entry, error) {
	if r.want.AdoptRelease == (Release{}) || r.want.Adoption != addonsv1.AdoptionPolicyAdopt {
		return nil, nil
	}
	store := r.previousStore(r.want.AdoptRelease)
	records, err := store.List(ctx)
	if err != nil || len(records) == 0 || records[0].Status == string(helmcommon.StatusUninstalled) {
		return nil, err
	}
	newest := records[0]
	switch {
	case newest.Owned:
		return nil, r.refuse(ReasonReleaseOwnedByOther, fmt.Sprintf(
			"adoptRelease names %s, which is an add-on of ClusterAddon %s. Take it out of its stack with deletionPolicy Orphan first",
			newest.Release, newest.Owner))
	case isLocked(newest, r.want, r.now()):
		return nil, r.refuse(ReasonReleaseLocked, fmt.Sprintf(
			"Helm is working on release %s, which adoptRelease names: its revision %d is %s", newest.Release, newest.Revision, newest.Status))
	}
	rec, err := store.Load(ctx, newest)
	if err != nil {
		return nil, err
	}
	if rec.Helm.Namespace != r.release.Namespace {
		return nil, r.refuse(ReasonReleaseExists, fmt.Sprintf(
			"The release that adoptRelease names, %s, has its objects in namespace %q. Set the add-on's namespace to that",
			newest.Release, rec.Helm.Namespace))
	}
	r.previous, r.adopted = rec, &record.AdoptedRelease{Name: r.want.AdoptRelease.Name, StorageNamespace: r.want.AdoptRelease.Namespace}
	return r.scope.InventoryOf(rec)
}

// previousStore has the records of the release that is taken over. They are read and deleted with
// the rights that the add-on's objects are written with.
func (r *call) previousStore(release Release) *record.Store {
	store := r.storeOf(release)
	store.Client = r.t.Client
	return store
}

// heritage is what the record of a release has for a new revision: the objects that its chart may look up, and the
// values that charts generated for them.
type heritage struct {
	release record.Release
	objects []record.Entry
	values  job.Generated
	owned   int // how many of the objects that others have, too, are the release's in the cluster
}

// heritageOf returns what releases have that may go over to this one.
func (r revisionMaker) heritageOf(ctx context.Context, releases []Release) (all []*heritage, err error) {
	for _, from := range releases {
		rec, err := r.storeOf(from).Newest(ctx)
		if err != nil {
			return nil, fmt.Errorf("add-on %s, which may leave objects to this one: %w", from, err)
		}
		if rec != nil && rec.State != nil {
			all = append(all, &heritage{release: from, objects: rec.State.Inventory, values: rec.State.Generated})
		}
	}
	return all, nil
}

// inheritOthers returns the generated values that a revision continues with, unless some are given. It returns the objects
// that its chart may look up, too: its own, and those of releases that leave.
func (r revisionMaker) inheritOthers(ctx context.Context, given job.Generated, own *heritage) (job.Generated, []record.Entry, error) {
	left, err := r.heritageOf(ctx, r.want.Leaving)
	if err != nil {
		return nil, nil, err
	}
	if given == nil {
		kept, err := r.heritageOf(ctx, r.want.Kept)
		if err != nil {
			return nil, nil, err
		}
		if given, err = r.joinValues(ctx, append(slices.Concat(kept, left), own)); err != nil {
			return nil, nil, err
		}
	}
	found := own.objects
	for _, one := range left {
		found = record.Union(one.objects, found)
	}
	return given, found, nil
}

// joinValues returns the generated values of all. A value is found again by the object that it is in, so an add-on
// that is renamed, split or joined keeps its passwords. Records may disagree about a value, where a previous owner of
// an object has its record still. Then the release counts that has the objects in the cluster.
func (r revisionMaker) joinValues(ctx context.Context, all []*heritage) (job.Generated, error) {
	var sources []job.Generated
	for i, one := range all {
		for _, other := range all[:i] {
			if generated.Disagree(one.values, other.values) {
				if err := r.countOwned(ctx, one, other); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *heritage) int { return cmp.Compare(a.owned, b.owned) })
	for _, one := range all {
		if len(one.values) > 0 {
			sources = append(sources, one.values)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return generated.Join(sources...), nil
}

// knowsOthers reports whether a release that leaves its objects to this one has other values for them than the newest
// revision, which began before that was known.
func (r revisionMaker) knowsOthers(ctx context.Context) (bool, error) {
	left, err := r.heritageOf(ctx, r.want.Leaving)
	if err != nil || len(left) == 0 {
		return false, err
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || rec.State == nil {
		return false, err
	}
	own := &heritage{release: r.release, objects: rec.State.Inventory, values: rec.State.Generated}
	values, err := r.joinValues(ctx, append(left, own))
	return err == nil && generated.Disagree(own.values, values), err
}

// countOwned counts the objects of two releases for the one that has them in the cluster.
func (r revisionMaker) countOwned(ctx context.Context, a, b *heritage) error {
	for _, e := range a.objects {
		if !slices.ContainsFunc(b.objects, func(other record.Entry) bool { return other.Key() == e.Key() }) {
			continue
		}
		m, err := r.scope.Metadata(ctx, r.t.Client, e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Key(), err)
		}
		for _, one := range []*heritage{a, b} {
			if object.OwnerOf(&m.ObjectMeta) == one.release && object.ManagedBy(&m.ObjectMeta, object.FieldManager(one.release)) {
				one.owned++
			}
		}
	}
	return nil
}
