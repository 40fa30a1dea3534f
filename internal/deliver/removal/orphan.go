// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"context"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Orphan lets go of all objects, and makes the records plain Helm ones. The
// objects lose our labels, as what has them is never taken over by another add-on.
func (s *Step) Orphan(ctx context.Context, applier apply.Applier, patience outcome.Patience) (outcome.Stop, error) {
	inventory, err := s.Past.Scope.InventoryOf(s.Record)
	if err != nil {
		return outcome.Stop{}, err
	}
	failed := object.InParallel(len(inventory), func(i int) *object.Failure {
		live, err := s.Past.Scope.Metadata(ctx, s.Reader, inventory[i])
		if err == nil && object.OwnerOf(&live.ObjectMeta) == s.Past.Scope.Release {
			err = applier.Disown(ctx, live, false)
		}
		if object.IsGone(err) {
			return nil
		}
		return s.Past.Hidden.FailureOf(inventory[i].Key(), err)
	})
	if stop, err := patience.StopFor(failed.Worst(), ""); stop.Is() || err != nil {
		return stop, err
	}
	for _, each := range slices.Backward(s.Past.Records) { // the newest last
		rec, err := s.Past.Store.Load(ctx, each)
		if record.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return outcome.Stop{}, err
		}
		if each.Revision == s.Record.Revision && rec.Status != string(helmcommon.StatusDeployed) && rec.State != nil {
			// It will never be completed, so that Helm may work on it.
			rec.SetStatus(helmcommon.StatusFailed, "Left by Chandler before it was complete")
		}
		if err := s.Past.Store.Plain(ctx, rec); err != nil {
			return outcome.Stop{}, err
		}
	}
	return outcome.Stop{}, nil
}
