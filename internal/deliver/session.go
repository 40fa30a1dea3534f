// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/deletion"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
	"github.com/cluster-chandler/chandler/internal/deliver/install"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/ready"
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
// Bound: add-ons that are not settled.
// Lost with it: requests, and nothing else.
type session struct {
	key     sessionKey
	mu      sync.Mutex
	tracker *observe.Tracker
	// isServed says that a call is under way.
	isServed atomic.Bool
	*contents

	// records are what was listed at this time, with what was written since.
	records  []Summary
	listedAt time.Time

	*progress

	backoff backoff
}

// contents are the objects and records of an add-on, which can be read again. A session has them while a call is under
// way. Else the Deliverer keeps them, while nothing else needs the memory.
//
// Key: the session.
// Bound: MaxKept bytes for all, and the budget.
// Lost with it: requests, and nothing else.
type contents struct {
	store  *record.Store
	wanted install.Wanted // by the revision
	// weight is about how many bytes these take.
	weight int64
}

// size returns about how many bytes the objects and records take.
func (c *contents) size() int64 { return c.store.Size() + c.weight }

// keep takes CRDs of crds/ and objects, as they are to be applied.
func (c *contents) keep(crds, objects []*unstructured.Unstructured) {
	c.wanted = install.Wanted{CRDs: crds, Objects: objects}
	c.weight = object.Weight(crds...) + object.Weight(objects...)
}

// progress is how far a revision is.
type progress struct {
	// about is the revision that the following is about, and whether it is removed.
	about   subject
	applied *ready.Objects
	install install.Progress
	waiting ready.Progress
	hooks   *hooks.Progress
	// running are the hooks' runs of a record that doesn't say yet that one of them runs.
	running history.HookRuns
	going   *deletion.Going
	// pruned says that nothing is left to be pruned.
	pruned bool
	// stoppedSince is when a step began to wait for what may come by itself, zero if none does.
	stoppedSince time.Time
}

type subject struct {
	revision types.UID // of the record
	removing bool
}

// session returns the add-on's, locked.
func (d *Deliverer) session(t Target, r Release) *session {
	key := sessionKey{target: t.Name, release: r}
	for {
		d.mu.Lock()
		s, ok := d.sessions[key]
		if !ok {
			s = &session{key: key, contents: &contents{store: d.storeOf(t, r, nil)}}
			s.tracker = observe.New(object.SelectorOf(r), func() { d.wake(s) }, d.options.Clock)
			s.turn(subject{})
			d.sessions[key] = s
		}
		d.mu.Unlock()
		s.mu.Lock()
		if d.isCurrent(s) {
			s.isServed.Store(true)
			if kept, found := d.kept.Take(s); found {
				s.contents = kept
			} else if s.contents == nil {
				s.contents = &contents{store: d.storeOf(t, r, nil)}
			}
			s.store.Client, s.store.Writer = t.own(), t.Secrets // new ones after each reconnection
			return s
		}
		s.mu.Unlock() // it was settled or forgotten while we waited for it
	}
}

// storeOf has a release's records, for who looks at them apart from a session. They count in the memory of a call, if there is one.
func (d *Deliverer) storeOf(t Target, r Release, of *memory.Claim) *record.Store {
	store := &record.Store{Client: t.own(), Writer: t.Secrets, Release: r, Clock: d.options.Clock, FieldManager: object.FieldManager(r)}
	if of != nil {
		store.Hold = of.Hold
	}
	return store
}

func (s *session) turn(about subject) {
	s.tracker.Stop()
	s.keep(nil, nil)
	s.progress = &progress{about: about, applied: ready.NewObjects(s.tracker), hooks: hooks.NewProgress(), going: deletion.NewGoing()}
}

// wake asks for the next call of an add-on.
func (d *Deliverer) wake(s *session) {
	d.mu.Lock()
	if d.sessions[s.key] == s && !s.isServed.Load() { // else it is forgotten, or its call may see it
		d.wakes[s.key.target]++
	}
	d.mu.Unlock()
	d.options.Notify(s.key.target)
}

// Woken returns a function that reports whether an add-on of a target, of which no call was under way, can go on since then.
func (d *Deliverer) Woken(target string) func() bool {
	wakes := func() uint64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.wakes[target]
	}
	before := wakes()
	return func() bool { return wakes() != before }
}

// isCurrent reports whether a session wasn't settled or forgotten.
func (d *Deliverer) isCurrent(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[s.key] == s
}

// recordsStay is how long a session takes the records for those that it knows. Others rarely
// write them, and the API server refuses a write that is based on an older one.
const recordsStay = 10 * time.Second

// recall takes the records that the session knows, or lists them.
func (r *call) recall(ctx context.Context) error {
	if r.now().Sub(r.s.listedAt) < recordsStay {
		r.past.Records = slices.Clone(r.s.records)
		return nil
	}
	newest := ""
	if r.s.about == (subject{}) { // later the session has the newest record, as a rule
		records, at, err := r.want.Installs.Records(ctx, r.t.own(), r.want.Release, r.now())
		if err != nil || r.now().Sub(at) < recordsStay {
			r.past.Records, r.s.listedAt = records, at
			return err
		}
		newest = r.want.Newest
	}
	r.s.listedAt = r.now()
	return r.past.ListAnd(ctx, newest)
}

// remember leaves the records to the session, if they are as they were written last.
func (r *call) remember(err error) {
	records := r.past.Records
	switch {
	case err == nil && r.rec == nil && len(records) == 0: // as while its source is asked
	case err == nil && r.rec != nil && len(records) > 0 && records[0].UID == r.rec.UID:
		records[0] = r.rec.Summary
	default:
		r.s.listedAt = time.Time{}
		return
	}
	r.s.records = records
}

// end leaves the session to the next call, and the memory to others.
func (r *call) end(ctx context.Context) {
	defer r.s.mu.Unlock()
	defer r.s.isServed.Store(false)
	if r.rec != nil && r.rec.State != nil && slices.ContainsFunc(r.rec.State.Hooks, func(h record.HookRun) bool {
		return h.Phase == helmrelease.HookPhaseRunning
	}) {
		r.s.running = history.HookRuns{Version: r.rec.ResourceVersion, Runs: slices.Clone(r.rec.State.Hooks)}
	}
	r.past.Memory.End()
	if r.d.isCurrent(r.s) {
		r.d.kept.Put(budget.TenantOf(ctx), r.s, r.s.contents)
	}
	r.s.contents = nil
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
