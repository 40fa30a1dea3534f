// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// announce writes wanted add-ons into the status before anything of them is installed.
// So people see what is going on, however long the installation takes.
func (q statusReport) announce(ctx context.Context) error {
	statuses, added := q.announced()
	if !added {
		return nil
	}
	q.ca.Status.Addons, q.ca.Status.ObservedUID = statuses, q.ca.UID
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	q.reportProofs() // those that a backup brought aren't of this ClusterAddon's records
	if err := q.statuses.Patch(ctx, q.stored, q.ca); err != nil {
		return err
	}
	q.ca.DeepCopyInto(q.stored)
	return nil
}

// announced returns the statuses with those of wanted add-ons; false if they are all there.
func (q statusReport) announced() (all []addonsv1.AddonStatus, added bool) {
	if q.ca.Status.ObservedUID == q.ca.UID {
		all = slices.Clone(q.ca.Status.Addons)
	}
	for i := range q.wanted {
		status := q.wanted[i].status()
		at := indexOf(all, status)
		switch {
		case at < 0:
			is := q.previousStatus(status)
			if reason, _ := upgradeGate(q).heldBack(&q.wanted[i], q.installed[q.wanted[i].release()]); reason != "" {
				is.Reason = reason
			}
			all, added = append(all, is), true
		case all[at].Reason == reasons.StackUnknown:
			all[at].Reason, all[at].Message, added = "", "", true
		}
		if at >= 0 && all[at].ServiceAccountName != status.ServiceAccountName {
			all[at].ServiceAccountName, added = status.ServiceAccountName, true
		}
	}
	return all, added
}
