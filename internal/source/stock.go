// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/repoindex"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

const (
	// freshIndex is how long an index is used without asking whether it changed.
	freshIndex = 30 * time.Second
	// indexCache is how much of indexes is kept in memory: about 100,000 versions.
	indexCache = 32 << 20 // bytes
	// archiveCache has room for archives between resolve and fetch.
	archiveCache = 2 * artifact.DefaultArchiveBytes
)

// stock is what was read from Helm repositories, and of releases at GitHub.
type stock struct {
	limits   artifact.Limits
	clock    clock.PassiveClock
	indexes  *lru.Cache[string, stockedIndex] // by URL and credential
	flights  singleflight.Group
	releases *releases
	archives *lru.Cache[string, artifact.Content] // by visit and digest: read to know it, and not asked for yet
}

// stockedIndex is an index, and what the repository needs to tell if it changed.
type stockedIndex struct {
	*repoindex.Index
	read         time.Time
	etag         string
	lastModified string
}

func newStock(limits artifact.Limits, clock clock.PassiveClock, memory *room.Room) *stock {
	return &stock{
		limits:   limits,
		clock:    clock,
		indexes:  lru.New[string](indexCache, func(i stockedIndex) int64 { return i.Size() }),
		archives: lru.New[string](archiveCache, artifact.Content.Bytes),
		releases: newReleases(clock, memory),
	}
}

// setAside keeps what was read to know its digest, until it is asked for.
func (s *stock) setAside(whose string, got artifact.Content) (digest string) {
	digest = got.Digest()
	s.archives.Put(whose+" is "+digest, got)
	return digest
}

// takeUp returns what was set aside, once: it is unpacked then, and remembered as such.
func (s *stock) takeUp(whose, digest string) (artifact.Content, bool) {
	got, found := s.archives.Get(whose + " is " + digest)
	if found {
		s.archives.Remove(whose + " is " + digest)
	}
	return got, found
}

// index of the repository. One is read for all charts of the repository.
func (s *stock) index(ctx context.Context, as *guest, from *addonsv1.HelmSource) (*repoindex.Index, error) {
	return s.indexSince(ctx, as, from, s.clock.Now().Add(-freshIndex))
}

// indexSince is the index as it was then, or later.
func (s *stock) indexSince(ctx context.Context, as *guest, from *addonsv1.HelmSource, notBefore time.Time) (*repoindex.Index, error) {
	name := from.URL + " " + as.credential.Fingerprint()
	known, found := s.indexes.Get(name)
	if found && !known.read.Before(notBefore) {
		return known.Index, nil
	}
	result, err, _ := s.flights.Do(name, func() (any, error) {
		at, err := (helmChart{HelmSource: from}).below("index.yaml")
		if err != nil {
			return nil, err
		}
		read, err := s.read(ctx, as, at, known)
		if err != nil {
			return nil, err
		}
		s.indexes.Put(name, read)
		return read.Index, nil
	})
	if err != nil {
		return nil, err
	}
	return result.(*repoindex.Index), nil
}

// read asks for the index, or whether the known one is still good.
func (s *stock) read(ctx context.Context, as *guest, at *url.URL, known stockedIndex) (stockedIndex, error) {
	header := http.Header{}
	if known.Index != nil && known.etag != "" {
		header.Set("If-None-Match", known.etag)
	}
	if known.Index != nil && known.lastModified != "" {
		header.Set("If-Modified-Since", known.lastModified)
	}
	response, err := as.get(ctx, at, header)
	if err != nil {
		return stockedIndex{}, err
	}
	defer release(response.Body)
	switch {
	case response.StatusCode == http.StatusNotModified && known.Index != nil:
		known.read = s.clock.Now()
		return known, nil
	case response.StatusCode == http.StatusNotFound:
		return stockedIndex{}, notPublished("there is no index.yaml; helm.url has to be that of a Helm repository")
	}
	if firstOf(response) == '<' {
		return stockedIndex{}, webPage(response.Request.URL.Host)
	}
	index, err := repoindex.Read(response.Body, repoindex.Limits{Bytes: s.limits.IndexBytes})
	switch {
	case errors.Is(err, repoindex.ErrTooLarge):
		return stockedIndex{}, failure.New(failure.ArtifactTooLarge, "the repository's index.yaml: %w", err)
	case errors.Is(err, repoindex.ErrNoIndex) && callsItselfPage(response): // some servers call all so, sound indexes too
		return stockedIndex{}, webPage(response.Request.URL.Host)
	case errors.Is(err, repoindex.ErrNoIndex):
		return stockedIndex{}, failure.New(failure.ArtifactInvalid, "the repository's index.yaml: %w", repoindex.ErrNoIndex)
	case err != nil:
		return stockedIndex{}, err
	}
	return stockedIndex{Index: index, read: s.clock.Now(), etag: response.Header.Get("ETag"), lastModified: response.Header.Get("Last-Modified")}, nil
}
