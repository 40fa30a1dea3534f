// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
)

const (
	// firstGrowth is how many bytes of an answer count before it is read. What counts doubles when they are there.
	firstGrowth = 64 << 10
	// decoded is how many times an answer counts that is decoded: its text, or what a decoder holds of that; the values, which
	// take up to three times the text where these are short; and the garbage that this leaves.
	decoded = 4
)

type decodingKey struct{}

// Decoding returns a context whose answers count with what they are decoded to.
func Decoding(ctx context.Context) context.Context {
	return context.WithValue(ctx, decodingKey{}, int64(decoded))
}

// Counting is a transport whose answers count as the memory of the namespace in the request's context: while they are
// read, and then until the context's holder releases them (see [budget.Holding]). An answer waits for memory as its bytes
// arrive, so that a host that sends little takes little.
type Counting struct {
	http.RoundTripper
	Memory *budget.Budget
	// Most is how many bytes the largest answer has that is accepted.
	Most int64
}

// RoundTrip implements [http.RoundTripper].
func (c *Counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = c.count(request.Context(), request.URL.Host, response.Body, response.ContentLength)
	return response, nil
}

// count returns the content of an answer as it counts. Its length is negative if it isn't known.
func (c *Counting) count(ctx context.Context, host string, content io.ReadCloser, length int64) io.ReadCloser {
	most := c.Most + 1 // so that a reader sees that it is too large
	if length >= 0 {
		most = min(most, length)
	}
	times, _ := ctx.Value(decodingKey{}).(int64)
	times = max(times, 1)
	tenant := budget.Tenant{Namespace: budget.TenantOf(ctx).Namespace}
	return &body{content: content, ctx: ctx, host: host, claim: c.Memory.Claim(tenant, times*most), times: times, most: most}
}

// body is the body of an answer that counts.
type body struct {
	content io.ReadCloser
	ctx     context.Context //nolint:containedctx // of the request that it answers
	host    string
	claim   *budget.Claim
	times   int64 // that a byte counts
	// read are the bytes that were, counted those that count, and most those that the answer may have.
	read, counted, most int64
	closeOnce           sync.Once
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.read == b.counted && b.counted < b.most {
		if err := b.grow(); err != nil {
			return 0, err
		}
	}
	n, err := b.content.Read(p[:min(int64(len(p)), max(b.counted-b.read, 1))]) // one more tells whether it is the end
	b.read += int64(n)
	if b.read > b.most {
		return n, failure.TooLarge("an answer of "+b.host, b.most)
	}
	return n, err
}

// grow waits until more bytes may count.
func (b *body) grow() error {
	to := min(b.most, max(firstGrowth, 2*b.counted))
	if err := b.claim.Grow(b.ctx, b.times*to); err != nil {
		return failure.NoMemory(budget.TenantOf(b.ctx).Namespace)
	}
	b.counted = to
	return nil
}

// Close implements [io.Closer].
func (b *body) Close() error {
	var err error
	b.closeOnce.Do(func() {
		err = b.content.Close()
		b.claim.Shrink(b.times * b.read)
		b.claim.Release(b.ctx)
	})
	return err
}
