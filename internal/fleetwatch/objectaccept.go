// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// Accepted is an object that is to stay as it is, though it isn't as it was applied.
type Accepted struct {
	Applied, Now drift.Fields
}

// Accept takes these objects of an add-on as they are, and no others.
func (w *Objects) Accept(conn *fleet.Connection, release deliver.Release, accepted map[deliver.ObjectKey]Accepted) {
	w.with(conn, release, func(_ *clusterObjects, f *followed) {
		f.wanted = drift.ParseSums(f.Applied)
		for key, a := range accepted {
			f.adjust(key, a.Applied, a.Now)
		}
	})
}

// adjust makes the wanted sum that of an object with other fields.
func (f *followed) adjust(key deliver.ObjectKey, was, now drift.Fields) {
	kind := schema.GroupKind{Group: key.Group, Kind: key.Kind}
	sum, known := f.wanted[kind]
	if !known {
		return
	}
	sum.Remove(objectName(key), was)
	sum.Add(objectName(key), now)
	f.wanted[kind] = sum
}
