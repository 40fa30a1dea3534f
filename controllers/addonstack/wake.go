// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/shares"
)

// waiting returns a context for calls that wait a moment for sources, in the share of the stack's
// namespace. An answer enqueues the stack.
func (r *Reconciler) waiting(ctx context.Context, key client.ObjectKey) context.Context {
	return r.Sources.Waiting(shares.WithTenant(ctx, key.Namespace, ""), "AddonStack "+key.String(), func() { r.wake.Add(key) })
}
