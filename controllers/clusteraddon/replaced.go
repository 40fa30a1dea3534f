// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// ensureReplaced takes an add-on as far as it can go whose values were replaced. It stays Ready if it is installed as the
// revision wants it. If an earlier release record has what the revision wants, the add-on goes back to that.
func (q delivery) ensureReplaced(ctx context.Context, replaced error, a *addon, ready map[string]bool, status addonsv1.AddonStatus) addonResult {
	record, installed := q.installed[a.release()]
	one := because(status, deliver.ReasonInputReplaced, replaced.Error())
	if installedAsWanted(a, record) && q.isProven(record) {
		one.status.Phase = addonsv1.AddonReady
		return one
	}
	if !installed {
		return one
	}
	if reason, message := upgradeGate(q).heldBack(a, record); reason != "" {
		return because(status, reason, message)
	}
	went := q.change(ctx, &inputs{addon: a, recorded: true}, ready, status)
	if went.status.Reason == deliver.ReasonInputReplaced {
		went.status.Message = shorten(replaced.Error() + ". No release record has the former ones: put them back, or change the AddonStack")
	}
	return went
}
