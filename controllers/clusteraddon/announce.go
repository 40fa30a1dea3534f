// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// announce writes wanted add-ons into the status before anything of them is installed.
// Only what a ClusterAddon has in its status is removed by it one day: see hasRun.
func (q *request) announce(ctx context.Context) error {
	statuses, added := q.announced()
	if !added {
		return nil
	}
	q.ca.Status.Addons, q.ca.Status.ObservedUID = statuses, q.ca.UID
	if err := q.statuses.Patch(ctx, q.stored, q.ca); err != nil {
		return err
	}
	q.ca.DeepCopyInto(q.stored)
	return nil
}

// announced returns the statuses with those of wanted add-ons; false if they are all there.
func (q *request) announced() (all []addonsv1.AddonStatus, added bool) {
	if q.ca.Status.ObservedUID == q.ca.UID {
		all = slices.Clone(q.ca.Status.Addons)
	}
	for i := range q.wanted {
		status := q.wanted[i].status()
		at := slices.IndexFunc(all, func(s addonsv1.AddonStatus) bool {
			return s.Name == status.Name && s.Namespace == status.Namespace && s.Stack == status.Stack
		})
		switch {
		case at < 0:
			all, added = append(all, q.previousStatus(status)), true
		case all[at].Reason == reasons.StackUnknown:
			all[at].Reason, all[at].Message, added = "", "", true
		}
	}
	return all, added
}
