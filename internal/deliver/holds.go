// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Keys returns the keys of a rendering's objects, as a release would have them in the
// cluster.
func (d *Deliverer) Keys(t Target, release Release, in *Rendering) ([]ObjectKey, error) {
	scope := t.scopeOf(release)
	crds, objects, err := scope.PrepareBoth(in.CRDs, in.Objects)
	var keys []ObjectKey
	for _, o := range slices.Concat(crds, objects) {
		keys = append(keys, record.KeyOf(o))
	}
	return keys, err
}

// Holds returns the objects that a release has by its newest record; false if that
// doesn't say.
func (d *Deliverer) Holds(ctx context.Context, t Target, release Release) ([]ObjectKey, bool, error) {
	rec, err := d.storeOf(t, release).Newest(ctx)
	if record.IsDamaged(err) || rec == nil && err == nil {
		return nil, false, nil
	}
	var inventory []record.Entry
	if err == nil {
		inventory, err = t.scopeOf(release).InventoryOf(rec)
	}
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
