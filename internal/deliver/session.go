// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"sync"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

type sessionKey struct {
	target  string
	release Release
}

// session is what is kept in memory of an add-on that isn't settled. Losing it
// costs requests and nothing else.
//
// Key: the target and the release.
// Bound: MaxKept bytes for all, of add-ons that are not settled.
// Lost with it: requests, and nothing else.
type session struct {
	key     sessionKey
	mu      sync.Mutex
	tracker *observe.Tracker
	*contents

	// records are what was listed at this time, with what was written since.
	records  []Summary
	parts    map[int][]string
	listedAt time.Time

	*progress
	// unscoped says that the cluster didn't know a kind of the objects yet.
	unscoped bool
	// noting is for progress: objects are applied in parallel.
	noting sync.Mutex

	backoff backoff
	// needs is how much room the add-on's calls need, in bytes, as far as that is known.
	needs int
	// place is the last in the line for room; nil if there was none.
	place *place
}

// contents are the objects and records of an add-on, which can be read again. A session has them while a call is under
// way, or a hook runs of which the record doesn't say so yet. Else the Deliverer keeps them.
//
// Key: the session.
// Bound: MaxKept bytes for all.
// Lost with it: requests, and nothing else.
type contents struct {
	store *record.Store
	// objects of the revision, and its CRDs of crds/, as they are to be applied.
	objects, crds []*unstructured.Unstructured
	// weight is about how many bytes these take.
	weight int
}

// maxKept bounds the contents that are kept between calls, in bytes, as [contents.size] estimates them.
const maxKept = 32 << 20

// size returns about how many bytes the objects and records take.
func (c *contents) size() int64 { return int64(c.store.Size() + 2*c.weight) }

// keep takes CRDs of crds/ and objects, as they are to be applied.
func (c *contents) keep(crds, objects []*unstructured.Unstructured) {
	c.crds, c.objects = crds, objects
	c.weight = object.Weight(crds...) + object.Weight(objects...)
}

// newContents returns contents that are yet to be read.
func (d *Deliverer) newContents(t Target, r Release) *contents {
	return &contents{store: d.storeOf(t, r)}
}

// session returns the add-on's, locked.
func (d *Deliverer) session(t Target, r Release) *session {
	key := sessionKey{target: t.Name, release: r}
	for {
		d.mu.Lock()
		s, ok := d.sessions[key]
		if !ok {
			s = &session{
				key:      key,
				tracker:  observe.New(object.SelectorOf(r), func() { d.options.Notify(t.Name) }, d.options.Clock),
				contents: d.newContents(t, r),
			}
			s.turn(subject{})
			d.sessions[key] = s
		}
		d.mu.Unlock()
		s.mu.Lock()
		if d.isCurrent(s) {
			if kept, found := d.kept.Take(s); found {
				s.contents = kept
			} else if s.contents == nil {
				s.contents = d.newContents(t, r)
			}
			s.store.Client = t.own() // a new one after each reconnection
			return s
		}
		s.mu.Unlock() // it was settled or forgotten while we waited for it
	}
}

// settled drops the session of an add-on that needs nothing any more, and returns the outcome.
func (r *call) settled(o Outcome) Outcome {
	r.s.tracker.Stop()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.d.sessions[r.s.key] == r.s {
		delete(r.d.sessions, r.s.key)
	}
	return o
}

// isCurrent reports whether a session wasn't settled or forgotten.
func (d *Deliverer) isCurrent(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[s.key] == s
}

// turnTo makes the session be about a revision.
func (s *session) turnTo(revision types.UID, removing bool) {
	about := subject{revision: revision, removing: removing}
	if s.about == about {
		return
	}
	if s.about.removing != removing {
		s.backoff = backoff{}
	}
	s.turn(about)
}

func (s *session) turn(about subject) {
	s.tracker.Stop()
	s.keep(nil, nil)
	s.progress = &progress{
		about: about, applied: map[record.ObjectKey]*applied{}, hooks: map[record.HookKey]*applied{},
		cleaned: map[helmrelease.HookEvent]bool{}, deleted: map[record.ObjectKey]going{},
	}
}

// hasApplied says whether an object was applied since the session began.
func (s *session) hasApplied(uid types.UID) bool {
	for _, a := range s.applied {
		if a.uid == uid {
			return true
		}
	}
	return false
}
