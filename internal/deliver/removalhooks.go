// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// removalHooks runs the hooks of a removal. They prepare for the end of what the
// add-on has, or clear up after it. So they aren't run if something of it lives on in
// another add-on: the Job that is to uninstall a storage system would do so.
func (r *removal) removalHooks(ctx context.Context, event helmrelease.HookEvent) error {
	if len(hooksFor(r.rec.Helm.Hooks, event)) == 0 || slices.Contains(r.rec.State.EventsDone, event.String()) {
		return nil
	}
	why, err := r.livesOn(ctx)
	if err != nil {
		return err
	}
	if why == "" {
		return hookRunner{r.call}.runHooks(ctx, event)
	}
	r.rec.State.Notes = append(r.rec.State.Notes, fmt.Sprintf("%s hooks weren't run, as %s", event, why))
	r.rec.State.EventsDone = append(r.rec.State.EventsDone, event.String())
	return r.update(ctx)
}

// livesOn says which object of the inventory now belongs to which other add-on that stays, "" for none.
func (r *removal) livesOn(ctx context.Context) (string, error) {
	inventory, err := r.scope.InventoryOf(r.rec)
	if err != nil {
		return "", err
	}
	for _, e := range inventory {
		if e.Shared || e.CRD {
			continue
		}
		live, err := r.scope.Metadata(ctx, r.t.own(), e)
		if object.IsGone(err) {
			continue
		}
		if err != nil {
			return "", r.failureOf(e.Key(), err)
		}
		if owner := object.OwnerOf(&live.ObjectMeta); owner != r.release && owner != (Release{}) && !slices.Contains(r.leaving, owner) {
			return fmt.Sprintf("%s belongs to add-on %s now", e.Key(), owner), nil
		}
	}
	return "", nil
}
