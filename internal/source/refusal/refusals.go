// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// Refusals remember of references without a digest that what they meant was refused. An
// exact version is taken to stay what it was, but whoever is told to mend it publishes it
// anew: so a source is asked again which content it is, after times that grow. What was
// refused by its digest stays so.
type Refusals struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of *lru.Cache[string, *refusal] // by the question for the digest
}

type refusal struct {
	digests     sets.Set[string] // that were refused
	waiting     bool             // for another answer than these
	credentials string           // that were used
	root        string           // the reference that an object has, which this may be a dependency of
	times       int              // that the source was asked
	until       time.Time        // it is asked again
	told        flight.Waiting   // those who were
}

// maxRefused is how many digests are remembered of one reference.
const maxRefused = 16

// rememberedReferences is how many references are remembered.
const rememberedReferences = 4096

// New keeps times by the clock.
func New(clock clock.PassiveClock) *Refusals {
	return &Refusals{clock: clock, of: lru.New[string](rememberedReferences, lru.One[*refusal])}
}

// Note that the content was refused, and say when the source is asked again.
func (r *Refusals) Note(ctx context.Context, to flight.Route, root, digest string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.Name)
	if !found {
		known = &refusal{digests: sets.New[string](), told: flight.Waiting{}}
		r.of.Put(to.Name, known)
	}
	if !known.waiting {
		known.waiting, known.credentials, known.root = true, to.Credentials, root
		known.until = r.clock.Now().Add(failure.Backoff(failure.ArtifactRefused, known.times))
	}
	if known.digests.Len() >= maxRefused && !known.digests.Has(digest) {
		clear(known.digests)
	}
	known.digests.Insert(digest)
	known.told.Add(ctx)
	return max(known.until.Sub(r.clock.Now()), 0)
}

// Has says whether the digest was refused.
func (r *Refusals) Has(question, digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(question)
	return found && known.digests.Has(digest)
}

// Waits says whether another answer than the refused ones is waited for.
func (r *Refusals) Waits(question string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(question)
	return found && known.waiting
}

// Due says whether to ask again. Nothing is that isn't waited for.
func (r *Refusals) Due(to flight.Route) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.of.Get(to.Name)
	return found && known.waiting && (!r.clock.Now().Before(known.until) || known.credentials != to.Credentials)
}

// Asked notes the answer; "" if there was none. If it is another one, whoever was told of
// the former is woken. That one may be refused, too, so the times go on to grow.
func (r *Refusals) Asked(to flight.Route, digest string) {
	r.mu.Lock()
	var told flight.Waiting
	if known, found := r.of.Get(to.Name); found && known.waiting {
		known.times++
		if known.credentials != to.Credentials {
			known.credentials, known.times = to.Credentials, 0
		}
		if digest == "" || known.digests.Has(digest) {
			known.until = r.clock.Now().Add(failure.Backoff(failure.ArtifactRefused, known.times))
		} else {
			told, known.told, known.waiting = known.told, flight.Waiting{}, false
		}
	}
	r.mu.Unlock()
	told.Wake()
}

// Used notes that the content is of use: all of it was read.
func (r *Refusals) Used(question, digest string) {
	r.mu.Lock()
	var told flight.Waiting
	if known, found := r.of.Get(question); found {
		if known.digests.Has(digest) {
			told, known.told = known.told, flight.Waiting{}
		}
		if known.digests.Delete(digest); !known.waiting || known.digests.Len() == 0 {
			r.of.Remove(question)
		}
	}
	r.mu.Unlock()
	told.Wake()
}

// Reconsider makes due what was refused of a reference, and of its dependencies, and
// wakes whoever was told.
func (r *Refusals) Reconsider(root string) {
	r.mu.Lock()
	told := flight.Waiting{}
	for _, known := range r.of.All() {
		if known.root != root {
			continue
		}
		known.until, known.times = time.Time{}, 0
		maps.Copy(told, known.told)
		clear(known.told)
	}
	r.mu.Unlock()
	told.Wake()
}
