// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// refusals remember of references without a digest that what they meant was refused. An
// exact version is taken to stay what it was, but whoever is told to mend it publishes it
// anew: so a source is asked again which content it is, after times that grow. What was
// refused by its digest stays so.
type refusals struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of *lru.Cache[string, *refusal] // by the question for the digest
}

type refusal struct {
	digest      string
	credentials string // that were used
	root        string // the reference that an object has, which this may be a dependency of
	times       int    // that the answer was this digest, but for the first
	until       time.Time
	told        map[Waiter]func() // who was, and how to wake them
}

func newRefusals(clock clock.PassiveClock) *refusals {
	return &refusals{clock: clock, of: lru.New[string](remembered, lru.One[*refusal])}
}

// digestQuestion is the name of what is asked to resolve the reference.
func (r Reference) digestQuestion() string { return "digest of " + r.String() }

// note that the content was refused, and say when the source is asked again.
func (r *refusals) note(ctx context.Context, to route, root, digest string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.name)
	if !found || known.digest != digest {
		known = &refusal{digest: digest, credentials: to.credentials, root: root, told: map[Waiter]func(){}}
		known.until = r.clock.Now().Add(backoff(failure.ArtifactRefused, 0))
		r.of.Put(to.name, known)
	}
	if by := wakerOf(ctx); by != nil {
		known.told[by.who] = by.wake
	}
	return max(known.until.Sub(r.clock.Now()), 0)
}

// due says whether to ask again.
func (r *refusals) due(to route) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.name)
	return found && (!r.clock.Now().Before(known.until) || known.credentials != to.credentials)
}

// asked notes the answer. If it is another one, whoever was told of the former is woken.
func (r *refusals) asked(to route, digest string) {
	r.mu.Lock()
	known, found := r.of.Get(to.name)
	var told map[Waiter]func()
	switch {
	case !found:
	case known.digest != digest:
		told = known.told
		r.of.Remove(to.name)
	default:
		if known.times++; known.credentials != to.credentials {
			known.credentials, known.times = to.credentials, 0
		}
		known.until = r.clock.Now().Add(backoff(failure.ArtifactRefused, known.times))
	}
	r.mu.Unlock()
	for _, wake := range told {
		wake()
	}
}

// reconsider makes due what was refused of a reference, and of its dependencies, and
// wakes whoever was told.
func (r *refusals) reconsider(root string) {
	r.mu.Lock()
	var told []func()
	for _, known := range r.of.All() {
		if known.root != root {
			continue
		}
		known.until, known.times = time.Time{}, 0
		for _, by := range known.told {
			told = append(told, by)
		}
		clear(known.told)
	}
	r.mu.Unlock()
	for _, wake := range told {
		wake()
	}
}

// Reconsider has the source asked at once which content the reference means, if that was
// refused: somebody says that it was mended. Whoever was told of the refusal is woken.
func (s *Sources) Reconsider(ref Reference) { s.remote.refused.reconsider(ref.String()) }

// Refuse notes that the caller can't use what the reference was resolved to: unless the
// reference itself names the digest, the source is asked again which content it is, after
// times that grow. It returns when; 0 for never.
func (s *Sources) Refuse(ctx context.Context, ref Reference, digest string) time.Duration {
	if named, _ := ref.digestField(); !ref.remote() || ref.Bundle != nil || named != "" || ref.pinned() != "" {
		return 0
	}
	root := ref
	for root.of != nil {
		root = *root.of
	}
	to := s.remote.route(ctx, ref.digestQuestion(), ref)
	switch left := s.remote.refused.note(ctx, to, root.String(), digest); {
	case left > 0:
		return left
	case s.remote.flights.underWay(to.name):
		return comeBack(ctx)
	}
	return wait.Jitter(firstRetry, jitter)
}

// refuse adds to an error about the content when the source is asked again.
func (s *Sources) refuse(ctx context.Context, ref Reference, digest string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || !failed.OfContent() {
		return err
	}
	left := s.Refuse(ctx, ref, digest)
	if left == 0 || failed.RetryAfter > 0 && failed.RetryAfter < left {
		return err
	}
	again := *failed
	again.RetryAfter = left
	return &again
}
