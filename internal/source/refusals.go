// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
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
	digests     sets.Set[string]  // that were refused
	waiting     bool              // for another answer than these
	credentials string            // that were used
	root        string            // the reference that an object has, which this may be a dependency of
	times       int               // that the source was asked
	until       time.Time         // it is asked again
	told        map[Waiter]func() // who was, and how to wake them
}

// maxRefused is how many digests are remembered of one reference.
const maxRefused = 16

func newRefusals(clock clock.PassiveClock) *refusals {
	return &refusals{clock: clock, of: lru.New[string](remembered, lru.One[*refusal])}
}

// digestQuestion is the name of what is asked to resolve the reference. Who wants another
// signature has a question of his own: what he refuses may be good for others.
func (r Reference) digestQuestion() string {
	question := "digest of " + r.String()
	if r.Chart.Verify == nil {
		return question
	}
	policy, err := json.Marshal(r.Chart.Verify)
	if err != nil { // it has nothing that isn't plain
		return question
	}
	return question + " for " + r.Namespace + ", verified by " + digestOf([]string{string(policy)})
}

// note that the content was refused, and say when the source is asked again.
func (r *refusals) note(ctx context.Context, to route, root, digest string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.name)
	if !found {
		known = &refusal{digests: sets.New[string](), told: map[Waiter]func(){}}
		r.of.Put(to.name, known)
	}
	if !known.waiting {
		known.waiting, known.credentials, known.root = true, to.credentials, root
		known.until = r.clock.Now().Add(backoff(failure.ArtifactRefused, known.times))
	}
	if known.digests.Len() >= maxRefused && !known.digests.Has(digest) {
		clear(known.digests)
	}
	known.digests.Insert(digest)
	if by := wakerOf(ctx); by != nil {
		known.told[by.who] = by.wake
	}
	return max(known.until.Sub(r.clock.Now()), 0)
}

// has says whether the digest was refused.
func (r *refusals) has(question, digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(question)
	return found && known.digests.Has(digest)
}

// due says whether to ask again.
func (r *refusals) due(to route) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.name)
	return found && known.waiting && (!r.clock.Now().Before(known.until) || known.credentials != to.credentials)
}

// asked notes the answer; "" if there was none. If it is another one, whoever was told of
// the former is woken. That one may be refused, too, so the times go on to grow.
func (r *refusals) asked(to route, digest string) {
	r.mu.Lock()
	var told map[Waiter]func()
	if known, found := r.of.Get(to.name); found && known.waiting {
		known.times++
		if known.credentials != to.credentials {
			known.credentials, known.times = to.credentials, 0
		}
		if digest == "" || known.digests.Has(digest) {
			known.until = r.clock.Now().Add(backoff(failure.ArtifactRefused, known.times))
		} else {
			told, known.told, known.waiting = known.told, map[Waiter]func(){}, false
		}
	}
	r.mu.Unlock()
	for _, wake := range told {
		wake()
	}
}

// used notes that the content is of use: all of it was read.
func (r *refusals) used(question, digest string) {
	r.mu.Lock()
	var told map[Waiter]func()
	if known, found := r.of.Get(question); found {
		if known.digests.Has(digest) {
			told, known.told = known.told, map[Waiter]func(){}
		}
		if known.digests.Delete(digest); !known.waiting || known.digests.Len() == 0 {
			r.of.Remove(question)
		}
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
	if !ref.mayMean(digest) {
		return 0
	}
	root := ref
	for root.of != nil {
		root = *root.of
	}
	to := s.remote.route(ctx, ref.digestQuestion(), ref)
	left := s.remote.refused.note(ctx, to, root.String(), digest)
	if left == 0 { // the caller had the digest from elsewhere
		_, _ = s.Resolve(ctx, ref)
		left = s.remote.refused.note(ctx, to, root.String(), digest)
	}
	if left == 0 { // it is being asked
		return comeBack(ctx)
	}
	return left
}

// mayMean says whether the reference was resolved to the digest, and may mean another one
// when its source is asked again.
func (r Reference) mayMean(digest string) bool {
	named, _ := r.digestField()
	return r.remote() && r.Bundle == nil && named == "" && r.pinned() == "" && digest != ""
}

// Kept is what the reference means for a caller who knows the digest that it was resolved
// to before: that one, unless it was refused and the source has another by now.
func (s *Sources) Kept(ctx context.Context, ref Reference, digest string) string {
	if !ref.mayMean(digest) || !s.remote.refused.has(ref.digestQuestion(), digest) {
		return digest
	}
	if now, err := s.Resolve(ctx, ref); err == nil {
		return now
	}
	return digest
}

// refuse adds to an error about the content when the source is asked again.
func (s *Sources) refuse(ctx context.Context, ref Reference, digest string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || !failed.OfContent() {
		return err
	}
	if failed.Reason == failure.DigestMismatch && ref.Chart.Verify == nil {
		return err // it was changed on the way: asked for by its tag, another one would come in its place
	}
	left := s.Refuse(ctx, ref, digest)
	if left == 0 || failed.RetryAfter > 0 && failed.RetryAfter < left {
		return err
	}
	again := *failed
	again.RetryAfter = left
	return &again
}
