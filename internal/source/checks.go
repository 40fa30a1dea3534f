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

// tallies are the checks of the sources that were asked last.
type tallies struct {
	mu    sync.Mutex
	known *lru.Cache[string, Checks]
}

// change changes the checks of a reference's source.
func (t *tallies) change(ref reference.Reference, change func(*Checks)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := ref.Source()
	known, _ := t.known.Get(name)
	if known.Results == nil {
		known.Results = map[string]uint64{}
	}
	change(&known)
	t.known.Put(name, known)
}

// Checks of the reference's source, that of the bundle if it is in one; false if it
// wasn't asked yet.
func (s *Sources) Checks(ref reference.Reference) (Checks, bool) {
	if ref.Bundle != nil {
		ref = reference.BundleOf(ref.Namespace, ref.Bundle)
	}
	s.checks.mu.Lock()
	defer s.checks.mu.Unlock()
	known, found := s.checks.known.Get(ref.Source())
	known.Results = maps.Clone(known.Results)
	return known, found
}

// count counts a look at the reference's source. Only one for which a request was sent is
// in the series of all sources.
func (s *Sources) count(ref reference.Reference, started time.Time, sent bool, err error) {
	ended, result := s.Clock.Now(), ResultSuccess
	if err != nil {
		result = failure.Of(err).Reason
	}
	if sent {
		countRequest(ref, started, ended, result)
	}
	s.checks.change(ref, func(known *Checks) {
		known.Last = ended
		if err == nil {
			known.LastSuccess = ended
		}
		known.Took += ended.Sub(started)
		known.Results[result]++
	})
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
	kind, host := seriesOf(ref)
	artifactBytes.WithLabelValues(kind, host).Add(float64(got.Bytes()))
	s.checks.change(ref, func(known *Checks) { known.Bytes += got.Bytes() })
}
