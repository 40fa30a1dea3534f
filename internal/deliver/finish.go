// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"
	"strings"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// prune deletes what is obsolete, if it is time to.
func (r installation) prune(ctx context.Context, isTime bool) error {
	if r.s.pruned || !isTime {
		return nil
	}
	obsolete, err := revisionInventory(r).obsolete()
	if err != nil {
		return err
	}
	if err := deletion(r).deleteEntries(ctx, obsolete, false); err != nil {
		return err
	}
	r.s.pruned = true
	return nil
}

// finish marks the revision deployed. The mark comes last, as then nobody looks again.
func (r installation) finish(ctx context.Context) error {
	for _, older := range r.records {
		if older.Revision >= r.rec.Revision {
			continue
		}
		status, description := helmcommon.StatusSuperseded, "Superseded by a newer revision"
		switch {
		case older.Status == StatusDeployed:
		case older.Pending():
			status, description = helmcommon.StatusFailed, "Replaced before it was complete"
		default:
			continue
		}
		if err := r.s.store.SetStatus(ctx, older, status, description); err != nil {
			return err
		}
	}
	_, _, operation := r.hookEvents()
	description := operation + " complete"
	if notes := r.rec.State.Notes; len(notes) > 0 {
		description += ". Left: " + strings.Join(notes, "; ")
	}
	wanted, err := revisionInventory(r).entries()
	if err != nil {
		return err
	}
	r.rec.State.Inventory = append(revisionInventory(r).withUIDs(wanted), revisionInventory(r).crdsOfRollback()...)
	r.rec.Applied = record.SumsOf(r.rec.State.Inventory).String()
	r.rec.State.PreviousSensitive = nil // nothing is left of what had them
	if len(r.rec.State.Parts) == 0 {
		r.rec.CRDs = nil // nothing reads them any more
	}
	if !r.rec.IsRollback() {
		r.rec.Postconditions, r.rec.Failure = r.want.Postconditions, ""
	}
	r.rec.SetStatus(helmcommon.StatusDeployed, message.Shorten(description, 1024))
	return r.update(ctx)
}

// hookEvents returns the events before and after the objects of the revision are applied, and what Helm calls that.
func (r installation) hookEvents() (before, after helmrelease.HookEvent, operation string) {
	switch {
	case r.rec.IsRollback():
		return helmrelease.HookPreRollback, helmrelease.HookPostRollback, "Rollback"
	case r.upgrading():
		return helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade, "Upgrade"
	}
	return helmrelease.HookPreInstall, helmrelease.HookPostInstall, "Install"
}

// revisionInventory has the entries of the revision that is worked on.
type revisionInventory struct{ *call }

// entries returns the inventory of what the revision has, as far as kinds are known now.
func (r revisionInventory) entries() ([]record.Entry, error) {
	return r.scope.Normalize(object.EntriesOf(r.s.crds, r.s.objects))
}

// obsolete returns what earlier revisions had and this one hasn't.
func (r revisionInventory) obsolete() ([]record.Entry, error) {
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return nil, err
	}
	wanted, err := r.entries()
	if err != nil {
		return nil, err
	}
	wanted = append(wanted, r.crdsOfRollback()...)
	return slices.DeleteFunc(record.Minus(inventory, wanted), func(e record.Entry) bool {
		_, applied := r.s.applied[e.Key()]
		return applied
	}), nil
}

// crdsOfRollback are the CRDs of crds/ that a rollback leaves: its record doesn't have them.
func (r revisionInventory) crdsOfRollback() []record.Entry {
	if !r.rec.IsRollback() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.rec.State.Inventory), func(e record.Entry) bool { return !e.CRD })
}

// withUIDs notes the objects that are known to be this add-on's, with what it owns of them,
// and the namespaces that aren't.
func (r revisionInventory) withUIDs(entries []record.Entry) []record.Entry {
	noted := slices.Clone(entries)
	for i := range noted {
		e := &noted[i]
		if a, ok := r.s.applied[e.Key()]; ok {
			e.Shared = a.left && e.GroupVersionKind().GroupKind() == object.NamespaceKind
			if !a.left {
				e.UID, e.Fields = a.uid, a.fields
			}
		}
	}
	return noted
}
