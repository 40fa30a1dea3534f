// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
)

// inherited is what the record of a release has for a new revision: the objects that its chart may look up, and the
// values that charts generated for them.
type inherited struct {
	release record.Release
	objects []record.Entry
	values  job.Generated
	before  *record.Record // of the release of Helm that the add-on takes over, nil if there is none
	owned   int            // how many of the objects that others have, too, are the release's in the cluster
}

// inherit returns the inventory and the generated values that the new revision
// takes over. The newest record's inventory contains those of all before it,
// unless Helm wrote it: then what our last one had is still to be managed.
func (m *Maker) inherit(ctx context.Context) (*inherited, error) {
	own := &inherited{release: m.Want.Release}
	for _, s := range m.Past.Records {
		if s.Status == string(helmcommon.StatusUninstalled) {
			break
		}
		rec, err := m.Past.Load(ctx, s)
		if err != nil {
			return nil, err
		}
		entries, err := m.Applier.Scope.InventoryOf(rec)
		if err != nil {
			return nil, err
		}
		if !m.Past.Believes(rec) {
			for i := range entries { // anybody may have written them
				entries[i].UID, entries[i].Fields, entries[i].Unproven = "", 0, true
			}
		}
		own.objects = record.Union(entries, own.objects)
		if s.Complete {
			own.values = rec.State.Generated
			return own, nil
		}
		own.before = cmp.Or(own.before, rec)
		if !s.Owned {
			break // what Helm did before its newest revision is over
		}
	}
	if len(own.objects) > 0 || record.Installed(m.Past.Records) {
		return own, nil
	}
	return own, m.inheritRelease(ctx, own)
}

// A release of another name, or with its record in another namespace, is taken over as one of
// the add-on's own name is: the first revision begins with its objects. Its record is deleted when
// that revision has them all, as `helm uninstall` would delete them by it.

// inheritRelease adds the objects of the release that the add-on is to take over, if
// there is one. Only an add-on without a record of its own asks.
func (m *Maker) inheritRelease(ctx context.Context, own *inherited) error {
	if m.Want.AdoptRelease == (record.Release{}) || m.Want.Adoption != addonsv1.AdoptionPolicyAdopt {
		return nil
	}
	store := AdoptedStore(m.StoreOf, m.Want.AdoptRelease, m.Applier.Client)
	records, err := store.List(ctx)
	if err != nil || len(records) == 0 || records[0].Status == string(helmcommon.StatusUninstalled) {
		return err
	}
	newest := records[0]
	switch {
	case newest.Owned:
		return failure.New(ReasonReleaseOwnedByOther,
			"adoptRelease names %s, which is an add-on of ClusterAddon %s. Take it out of its stack with deletionPolicy Orphan first",
			newest.Release, newest.Owner)
	case isLocked(newest, m.Want, m.Clock.Now()):
		return refuse(ReasonReleaseLocked,
			"Helm is working on release %s, which adoptRelease names: its revision %d is %s", newest.Release, newest.Revision, newest.Status).Refusal
	}
	rec, err := store.Load(ctx, newest)
	if err != nil {
		return err
	}
	if rec.Helm.Namespace != m.Want.Namespace {
		return failure.New(ReasonReleaseExists,
			"The release that adoptRelease names, %s, has its objects in namespace %q. Set the add-on's namespace to that",
			newest.Release, rec.Helm.Namespace)
	}
	own.before, m.Past.Adopted = rec, &record.AdoptedRelease{Name: m.Want.AdoptRelease.Name, StorageNamespace: m.Want.AdoptRelease.Namespace}
	own.objects, err = m.Applier.Scope.InventoryOf(rec)
	return err
}

// AdoptedStore returns the records of the release that is taken over. They are read and deleted with
// the rights that the add-on's objects are written with.
func AdoptedStore(storeOf func(record.Release) *record.Store, adopted record.Release, addon client.Client) *record.Store {
	store := storeOf(adopted)
	store.Client = addon
	return store
}

// inheritFrom returns what releases have that may go over to this one.
func (m *Maker) inheritFrom(ctx context.Context, releases []record.Release) (all []*inherited, err error) {
	for _, from := range releases {
		rec, err := m.StoreOf(from).Newest(ctx)
		if err != nil {
			return nil, fmt.Errorf("add-on %s, which may leave objects to this one: %w", from, err)
		}
		if rec != nil && rec.State != nil {
			all = append(all, &inherited{release: from, objects: rec.State.Inventory, values: rec.State.Generated})
		}
	}
	return all, nil
}

// inheritOthers returns the generated values that a revision continues with, unless some are given. It returns the objects
// that its chart may look up, too: its own, and those of releases that leave.
func (m *Maker) inheritOthers(ctx context.Context, given job.Generated, own *inherited) (job.Generated, []record.Entry, error) {
	left, err := m.inheritFrom(ctx, m.Want.Leaving)
	if err != nil {
		return nil, nil, err
	}
	if given == nil {
		kept, err := m.inheritFrom(ctx, m.Want.Kept)
		if err != nil {
			return nil, nil, err
		}
		if given, err = m.joinValues(ctx, append(slices.Concat(kept, left), own)); err != nil {
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
// an object has its record still. Then the release counts that has the objects in the cluster. A record also has values that its
// add-on doesn't use: these give way to those that another one uses.
func (m *Maker) joinValues(ctx context.Context, all []*inherited) (job.Generated, error) {
	var sources []job.Generated
	for i, one := range all {
		for _, other := range all[:i] {
			if keptvalues.Disagree(one.values, other.values) {
				if err := m.countOwned(ctx, one, other); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *inherited) int { return cmp.Compare(a.owned, b.owned) })
	for _, one := range all {
		if len(one.values) > 0 {
			sources = append(sources, one.values)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return keptvalues.Join(sources...), nil
}

// knowsOthers reports whether a release that leaves its objects to this one has other values for them than the newest
// revision, which began before that was known.
func (m *Maker) knowsOthers(ctx context.Context) (bool, error) {
	left, err := m.inheritFrom(ctx, m.Want.Leaving)
	if err != nil || len(left) == 0 {
		return false, err
	}
	rec, err := m.Past.Load(ctx, m.Past.Records[0])
	if err != nil || rec.State == nil {
		return false, err
	}
	own := &inherited{release: m.Want.Release, objects: rec.State.Inventory, values: rec.State.Generated}
	values, err := m.joinValues(ctx, append(left, own))
	return err == nil && keptvalues.Disagree(own.values, values), err
}

// countOwned counts the objects of two releases for the one that has them in the cluster.
func (m *Maker) countOwned(ctx context.Context, a, b *inherited) error {
	for _, e := range a.objects {
		if !slices.ContainsFunc(b.objects, func(other record.Entry) bool { return other.Key() == e.Key() }) {
			continue
		}
		m, err := m.Applier.Scope.Metadata(ctx, m.Applier.Client, e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.Key(), err)
		}
		for _, one := range []*inherited{a, b} {
			if object.OwnerOf(&m.ObjectMeta) == one.release && object.ManagedBy(&m.ObjectMeta, object.FieldManager(one.release)) {
				one.owned++
			}
		}
	}
	return nil
}
