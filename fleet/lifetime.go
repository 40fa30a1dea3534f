// SPDX-License-Identifier: Apache-2.0

package fleet

import "context"

// lifetime is that of a connection.
type lifetime struct {
	ctx    context.Context //nolint:containedctx // it is the lifetime itself
	cancel context.CancelFunc
}

// Done is closed when the cluster is disconnected.
func (l lifetime) Done() <-chan struct{} { return l.ctx.Done() }

// Context ends with the connection. Watches hang on it.
func (l lifetime) Context() context.Context { return l.ctx }
