// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/answers"
)

// Documents are parsed answers that may change, as indexes and lists do, by address and
// credential.
type Documents[T any] struct {
	known *answers.Memory[document[T]]
	cost  func(parsed T, bytes int64) int64
}

type document[T any] struct {
	parsed     T
	validators http.Header // on which conditions the host may say that it is still good
	cost       int64
}

// NewDocuments returns a memory that keeps documents up to a total cost. The function cost tells
// the cost of each document by its parsed value, and by the bytes that it had before.
func NewDocuments[T any](clock clock.Clock, memory *budget.Budget, capacity int64, cost func(parsed T, bytes int64) int64) *Documents[T] {
	const overhead = 256 // with the key
	return &Documents[T]{answers.New(clock, memory, capacity, func(d document[T]) int64 {
		all := d.cost + overhead
		for _, validator := range d.validators {
			all += answers.Strings(validator)
		}
		return all
	}), cost}
}

// Get returns the document at an address as it was a moment ago, or since c.NotBefore. The host is
// asked whether the answer before is still good (RFC 9110, section 13).
func (d *Documents[T]) Get(ctx context.Context, c *Client, at *url.URL, what string, missing *failure.Error, parse func(context.Context, Answer) (T, error)) (T, error) {
	const moment = 30 * time.Second
	q := answers.Question{Key: d.key(c, at), NotBefore: c.clock.Now().Add(-moment)}
	if c.NotBefore.After(q.NotBefore) {
		q.NotBefore = c.NotBefore
	}
	got, err := d.known.Ask(ctx, q, func(ctx context.Context) (document[T], error) {
		before, _ := d.known.Peek(q.Key)
		answer, err := c.get(Decoding(ctx), at, before.validators.Clone(), what, c.Limits.IndexBytes)
		switch {
		case err != nil:
			return document[T]{}, c.Explain(ctx, err)
		case answer.Same:
			return before, nil
		case answer.Data == nil:
			return document[T]{}, missing
		}
		parsed, err := parse(ctx, answer)
		return document[T]{parsed, answer.Validators, d.cost(parsed, int64(len(answer.Data)))}, c.Explain(ctx, err)
	})
	return got.parsed, c.inOwnWords(err)
}

// Forget has the document read again.
func (d *Documents[T]) Forget(c *Client, at *url.URL) { d.known.Forget(d.key(c, at)) }

func (d *Documents[T]) key(c *Client, at *url.URL) string {
	return at.String() + " " + c.Credential.Fingerprint()
}
