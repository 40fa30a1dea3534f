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
func (p *pass) announce(ctx context.Context, wanted []addon) error {
	var all []addonsv1.AddonStatus
	if p.ca.Status.ObservedUID == p.ca.UID {
		all = slices.Clone(p.ca.Status.Addons)
	}
	added := false
	for i := range wanted {
		a := &wanted[i]
		status := addonsv1.AddonStatus{Name: a.Name, Namespace: a.release().Namespace, Stack: a.stack, Phase: addonsv1.AddonPending}
		at := slices.IndexFunc(all, func(s addonsv1.AddonStatus) bool {
			return s.Name == status.Name && s.Namespace == status.Namespace && s.Stack == status.Stack
		})
		switch {
		case at < 0:
			all, added = append(all, p.formerly(status)), true
		case all[at].Reason == reasons.StackUnknown:
			all[at].Reason, all[at].Message, added = "", "", true
		}
	}
	if !added {
		return nil
	}
	p.ca.Status.Addons, p.ca.Status.ObservedUID = all, p.ca.UID
	if err := p.Reconciler.statuses.Patch(ctx, p.stored, p.ca); err != nil {
		return err
	}
	p.stored = p.ca.DeepCopy()
	return nil
}
