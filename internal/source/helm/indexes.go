// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/repoindex"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/source/webpage"
)

const (
	// freshIndex is how long an index is used without asking whether it changed.
	freshIndex = 30 * time.Second
	// maxIndex is what one takes at most.
	maxIndex = repoindex.DefaultKept
	// IndexCache is how much of indexes is kept in memory: about 100,000 versions.
	IndexCache = 32 << 20 // bytes
)

// Indexes are what was read of Helm repositories.
type Indexes struct {
	limits  artifact.Limits
	clock   clock.PassiveClock
	room    *room.Room
	known   *lru.Cache[string, knownIndex] // by URL and credential
	flights singleflight.Group
}

// knownIndex is an index, and what the repository needs to tell if it changed.
type knownIndex struct {
	*repoindex.Index
	asked, came time.Time
	validators
}

// validators are what a repository tells by whether its index has changed.
type validators struct{ etag, lastModified string }

// NewIndexes keeps so many bytes of indexes, and reads them in the room.
func NewIndexes(limits artifact.Limits, clock clock.PassiveClock, memory *room.Room, bytes int64) *Indexes {
	return &Indexes{
		limits: limits,
		clock:  clock,
		room:   memory,
		known:  lru.New[string](bytes, func(i knownIndex) int64 { return i.Size() }),
	}
}

// index of the repository. One is read for all charts of the repository.
func (s *Indexes) index(ctx context.Context, as *guest.Guest, from *addonsv1.HelmSource) (*repoindex.Index, error) {
	since := s.clock.Now().Add(-freshIndex)
	got, err := s.indexThat(ctx, as, from, func(known knownIndex) bool { return !known.came.Before(since) })
	return got.Index, err
}

// indexSince is the index as it was then, or later.
func (s *Indexes) indexSince(ctx context.Context, as *guest.Guest, from *addonsv1.HelmSource, notBefore time.Time) (knownIndex, error) {
	return s.indexThat(ctx, as, from, func(known knownIndex) bool { return !known.asked.Before(notBefore) })
}

// indexThat is new enough.
func (s *Indexes) indexThat(ctx context.Context, as *guest.Guest, from *addonsv1.HelmSource, willDo func(knownIndex) bool) (knownIndex, error) {
	name := from.URL + " " + as.Credential.Fingerprint()
	at, err := (Chart{HelmSource: from}).below("index.yaml")
	if err != nil {
		return knownIndex{}, err
	}
	for {
		if known, found := s.known.Get(name); found && willDo(known) {
			return known, nil
		}
		result, err, _ := s.flights.Do(name, func() (any, error) {
			read, err := s.read(ctx, as, at, name)
			if err == nil {
				s.known.Put(name, read)
			}
			return read, err
		})
		if read := result.(knownIndex); err != nil || willDo(read) {
			return read, err
		}
		// Others began to read it, too early.
	}
}

// errNotModified says that the index is what it was.
var errNotModified = errors.New("not modified")

// read asks for the index, or whether the known one is still good. That isn't held
// meanwhile: it may be large, and has to go if others come.
func (s *Indexes) read(ctx context.Context, as *guest.Guest, at *url.URL, name string) (knownIndex, error) {
	asked, unchanged := s.clock.Now(), s.validatorsOf(name)
	read, err := s.ask(ctx, as, at, unchanged)
	if errors.Is(err, errNotModified) {
		known, found := s.known.Get(name)
		if found && known.validators == unchanged {
			read, err = known, nil
		} else {
			read, err = s.ask(ctx, as, at, validators{})
		}
	}
	read.asked, read.came = asked, s.clock.Now()
	return read, err
}

func (s *Indexes) validatorsOf(name string) validators {
	known, _ := s.known.Get(name)
	return known.validators
}

// ask for the index, if it isn't the one with these validators.
func (s *Indexes) ask(ctx context.Context, as *guest.Guest, at *url.URL, unless validators) (knownIndex, error) {
	header := http.Header{}
	if unless.etag != "" {
		header.Set("If-None-Match", unless.etag)
	}
	if unless.lastModified != "" {
		header.Set("If-Modified-Since", unless.lastModified)
	}
	ctx, reading := s.room.Enter(ctx) // it needs no room any more when it is in the cache
	defer reading.Done()
	response, err := as.Get(ctx, at, header)
	if err != nil {
		return knownIndex{}, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotModified && unless != (validators{}):
		return knownIndex{}, errNotModified
	case response.StatusCode == http.StatusNotFound:
		return knownIndex{}, failure.NotPublished("there is no index.yaml; helm.url has to be that of a Helm repository")
	}
	if err := room.Begin(ctx); err != nil {
		return knownIndex{}, err
	}
	if webpage.FirstOf(response) == '<' {
		return knownIndex{}, webpage.Error(response.Request.URL.Host)
	}
	index, err := repoindex.Read(room.Measured(ctx, response.Body), repoindex.Limits{
		Bytes: s.limits.IndexBytes, Kept: maxIndex, Reserve: func() error { return room.Reserve(ctx, maxIndex) },
	})
	switch {
	case errors.Is(err, repoindex.ErrTooLarge):
		return knownIndex{}, failure.New(failure.ArtifactTooLarge, "the repository's index.yaml: %w; have a smaller one made", err)
	case errors.Is(err, repoindex.ErrNoIndex) && webpage.SaysItIs(response): // some servers call all so, sound indexes too
		return knownIndex{}, webpage.Error(response.Request.URL.Host)
	case errors.Is(err, repoindex.ErrNoIndex):
		return knownIndex{}, failure.New(failure.ArtifactInvalid, "the repository's index.yaml: %w; correct helm.url, or have the index made anew", repoindex.ErrNoIndex)
	case err != nil:
		return knownIndex{}, room.Why(ctx, err)
	}
	return knownIndex{Index: index, validators: validators{response.Header.Get("ETag"), response.Header.Get("Last-Modified")}}, nil
}
