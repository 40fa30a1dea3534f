// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// A list may have 100,000 versions, and be dropped from memory before those who wait for it come back. So each list is searched for all
// that is looked for when it arrives, and what was found is kept, which is a line each.

// search is one look for a version in the lists of an artifact.
type search struct {
	in     func(published []string) (string, error)
	wanted bool // since the last list
	found
}

// found is what came of a search.
type found struct {
	version string
	none    error     // why there is no version
	asked   time.Time // when the list was asked for; zero: none was searched yet
}

// searches remembers which versions were looked for, and found, in lists.
//
// Key: the question for the list, which has the artifact and who asks.
// Bound: 2 MiB for all of them, of the account of the memory; those that nobody asked for since the previous list are dropped with the next.
// Lost with it: the list is asked for again.
type searches struct {
	known *budget.Cache[string, map[string]search]
}

// costOfSearches returns what the searches in the lists of an artifact count: none of them takes more than a version, a line and an error.
func costOfSearches(all map[string]search) int64 { return int64(len(all)) * 2 * ofLine }

// find looks for a version in the list of the reference's artifact, which is asked for if what was found before is older than notBefore.
func (s *Sources) find(ctx context.Context, ref reference.Reference, what string, in func([]string) (string, error), notBefore time.Time) (found, error) {
	from, ok := s.backendOf(ref).(catalogue)
	if !ok {
		return found{}, failure.New(failure.ArtifactInvalid, "newer versions are to be looked for, but this kind of source has no list of them; name an exact version")
	}
	if ref.Traits().InCluster { // a watch has its version
		list, err := from.Versions(ctx, nil)
		if err != nil {
			return found{}, err
		}
		return foundIn(list, in, time.Time{}), nil
	}
	q := s.question(ctx, "versions of "+ref.Source(), ref)
	q.NotBefore = notBefore
	s.searches.change(ref, q.Key, func(all map[string]search) { all[what] = search{in, true, all[what].found} })
	if known := s.searches.found(q.Key, what); known.isSince(notBefore) {
		return known, nil
	}
	list, err := ask(ctx, s, s.lists, q, ref, func(ctx context.Context, c *auth.Client) ([]string, error) {
		asked := s.Clock.Now()
		list, err := from.Versions(ctx, c)
		if err == nil {
			s.searches.list(ref, q.Key, list, asked)
		}
		return list, err
	})
	if err != nil {
		return found{}, err
	}
	if known := s.searches.found(q.Key, what); known.isSince(notBefore) {
		return known, nil
	}
	return foundIn(list, in, time.Time{}), nil
}

// list searches a list for all that was looked for since the one before, and forgets other searches.
func (s searches) list(ref reference.Reference, key string, list []string, asked time.Time) {
	all, _ := s.known.Get(key)
	done := map[string]found{}
	for what, one := range all {
		if one.wanted {
			done[what] = foundIn(list, one.in, asked)
		}
	}
	s.change(ref, key, func(now map[string]search) {
		for what := range all {
			delete(now, what)
		}
		for what, is := range done {
			now[what] = search{all[what].in, false, is}
		}
	})
}

// change changes the searches in the lists of an artifact.
func (s searches) change(ref reference.Reference, key string, change func(map[string]search)) {
	s.known.Change(budget.Tenant{Namespace: ref.Namespace}, key, func(all *map[string]search) {
		now := maps.Clone(*all) // others read the previous ones
		if now == nil {
			now = map[string]search{}
		}
		change(now)
		*all = now
	})
}

// found returns what came of a search, zero if none was made.
func (s searches) found(key, what string) found {
	all, _ := s.known.Get(key)
	return all[what].found
}

// foundIn returns what is found in a list.
func foundIn(list []string, in func([]string) (string, error), asked time.Time) found {
	version, err := in(list)
	return found{strings.Clone(version), err, asked} // without the list's text
}

// isSince reports whether a list was searched that was asked for no earlier.
func (f found) isSince(notBefore time.Time) bool {
	return !f.asked.IsZero() && !f.asked.Before(notBefore)
}
