// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

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
