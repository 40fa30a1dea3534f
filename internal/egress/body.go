// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"io"
)

// body is an answer's, whose errors are faults: those of HTTP/2 can't be told from
// those of who reads it otherwise.
type body struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // of the request that it answers
	host string
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fault(Unavailable, "%s broke off its answer; "+again, b.host)
	}
	return n, explain(b.ctx, b.host, err)
}
