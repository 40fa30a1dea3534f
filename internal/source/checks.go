// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Checks are what asking one source came to since the process started. Whatever
// versions it was asked for, it is one source; so it is for all objects that name it
// with the same credentials.
type Checks struct {
	// Last is when it was asked, LastSuccess when with success. Zero: never.
	Last, LastSuccess time.Time
	// Took is how long that took, all together.
	Took time.Duration
	// Bytes of the content that it gave.
	Bytes int64
	// Results says how often it came to what: [ResultSuccess], or the reason of a failure.
	Results map[string]uint64
}

// ResultSuccess is the result of a check without an error.
const ResultSuccess = "Success"

// Checks of the reference's source, that of the bundle if it is in one; false if it
// wasn't asked yet.
func (s *Sources) Checks(ref reference.Reference) (Checks, bool) {
	if ref.Bundle != nil {
		ref = reference.BundleOf(ref.Namespace, ref.Bundle)
	}
	known, found := s.checks.known.Get(ref.Source())
	if !found {
		return Checks{}, false
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	is := known.Checks
	is.Results = maps.Clone(is.Results)
	return is, true
}

// tallies are the checks of the sources that were asked last.
type tallies struct {
	mu    sync.Mutex
	known *lru.Cache[string, *tally]
}

// tally of one source.
type tally struct {
	mu sync.Mutex
	Checks
}

func newTallies() *tallies { return &tallies{known: lru.New[string](remembered, lru.One[*tally])} }

// of a source, a new one if there is none yet.
func (t *tallies) of(ref reference.Reference) *tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := ref.Source()
	known, found := t.known.Get(name)
	if !found {
		known = &tally{Checks: Checks{Results: map[string]uint64{}}}
		t.known.Put(name, known)
	}
	return known
}

// count counts a look at the reference's source. Only one for which a request was sent is
// in the series of all sources.
func (s *Sources) count(ref reference.Reference, started time.Time, sent bool, err error) {
	ended := s.Clock.Now()
	if sent {
		countRequest(ref, started, ended, err)
	}
	known := s.checks.of(ref)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.Last = ended
	if err == nil {
		known.LastSuccess = ended
	}
	known.Took += ended.Sub(started)
	known.Results[resultOf(err)]++
}

// counted counts a look at what is at hand, which takes no request while nothing changed.
func counted[T any](s *Sources, ref reference.Reference, look func() (T, error)) (T, error) {
	started := s.Clock.Now()
	got, err := look()
	if !errors.Is(err, context.Canceled) { // else nobody waits for it any more
		s.count(ref, started, true, err)
	}
	return got, err
}

// countBytes counts content that a source gave.
func (s *Sources) countBytes(ref reference.Reference, got artifact.Content) {
	countBytes(ref, got)
	known := s.checks.of(ref)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.Bytes += got.Bytes()
}

// resultOf is the reason of an error, of which all that have none are the source's.
func resultOf(err error) string {
	if err == nil {
		return ResultSuccess
	}
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		return failed.Reason
	}
	return failure.SourceUnavailable
}
