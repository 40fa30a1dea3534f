// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"strings"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Finish marks a revision deployed, with the inventory that its record has, and the postconditions that hold. The mark comes last, as then nobody looks again.
func Finish(ctx context.Context, past *history.History, rec *record.Record, operation, postconditions string) error {
	for _, older := range past.Records {
		if older.Revision >= rec.Revision {
			continue
		}
		status, description := helmcommon.StatusSuperseded, "Superseded by a newer revision"
		switch {
		case older.Status == record.StatusDeployed:
		case older.Pending():
			status, description = helmcommon.StatusFailed, "Replaced before it was complete"
		default:
			continue
		}
		if err := past.Store.SetStatus(ctx, older, status, description); err != nil {
			return err
		}
	}
	description := operation + " complete"
	if notes := rec.State.Notes; len(notes) > 0 {
		description += ". Left: " + strings.Join(notes, "; ")
	}
	rec.Applied = record.SumsOf(rec.State.Inventory).String()
	rec.State.PreviousSensitive = nil // nothing is left of what had them
	rec.CRDs = nil                    // nothing reads them any more
	if !rec.IsRollback() {
		rec.Postconditions, rec.Failure = postconditions, ""
	}
	rec.SetStatus(helmcommon.StatusDeployed, message.Shorten(description, 1024))
	return past.Store.Update(ctx, rec)
}

// RetireAdopted deletes the records of the release that was taken over, with the add-on's rights.
func RetireAdopted(ctx context.Context, storeOf func(record.Release) *record.Store, rec *record.Record, addon client.Client) error {
	adopted := rec.State.Adopted
	if adopted == nil {
		return nil
	}
	store := AdoptedStore(storeOf, record.Release{Namespace: adopted.StorageNamespace, Name: adopted.Name}, addon)
	records, err := store.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range records {
		if s.Owned {
			continue
		}
		if err := store.Delete(ctx, s.SecretName); err != nil {
			return err
		}
	}
	rec.State.Adopted = nil // which is written with the end of the revision
	return nil
}
