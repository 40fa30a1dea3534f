// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// notePauses notes which stacks are paused that aren't assigned any more, and whose add-ons are still to be removed.
func (q gathering) notePauses(ctx context.Context) error {
	for _, record := range q.installed {
		if stack.Assigned(q.ca.Spec.Stacks, record.Stack).Name != "" || !q.proofs.Prove(record) {
			continue
		}
		q.users.Add(client.ObjectKeyFromObject(q.ca), inputs.Object{Kind: inputs.KindStack, Key: q.keyOf(record.Stack)}) // before it is read: so no change is missed
		s := &addonsv1.AddonStack{}
		if err := q.Client.Get(ctx, q.keyOf(record.Stack), s); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading AddonStack %s: %w", record.Stack, err)
		}
		if annotations.HasPaused(s) {
			q.paused.Insert(record.Stack)
		}
	}
	return nil
}
