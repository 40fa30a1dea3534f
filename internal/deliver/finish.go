// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"strings"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// prune deletes obsolete objects, if it is time to. By default the prune comes last: after all new objects are ready.
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
