// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"
	"sync"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/health"
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
	*contents

	// records are what was listed at this time, with what was written since.
	records  []Summary
	listedAt time.Time

	*progress
	// unscoped says that the cluster didn't know a kind of the objects yet.
	unscoped bool
	// noting is for progress: objects are applied in parallel.
	noting sync.Mutex

	backoff backoff
}

// contents are the objects and records of an add-on, which can be read again. A session has them while a call is under
// way. Else the Deliverer keeps them, while nothing else needs the memory.
//
// Key: the session.
// Bound: MaxKept bytes for all, and the budget.
// Lost with it: requests, and nothing else.
type contents struct {
	store *record.Store
	// objects of the revision, and its CRDs of crds/, as they are to be applied.
	objects, crds []*unstructured.Unstructured
	// weight is about how many bytes these take.
	weight int64
}

// size returns about how many bytes the objects and records take.
func (c *contents) size() int64 { return c.store.Size() + c.weight }

// keep takes CRDs of crds/ and objects, as they are to be applied.
func (c *contents) keep(crds, objects []*unstructured.Unstructured) {
	c.crds, c.objects = crds, objects
	c.weight = object.Weight(crds...) + object.Weight(objects...)
}

// progress is how far a revision is.
type progress struct {
	// about is the revision that the following is about, and whether it is removed.
	about subject
	// applied are those that were applied since the session began.
	applied map[record.ObjectKey]*applied
	// hooks are the hooks' objects.
	hooks map[record.HookKey]*applied
	// running are the hooks' runs of a record that doesn't say yet that one of them runs.
	running hookRuns
	// cleaned are the events whose hooks' objects were deleted by their policy.
	cleaned map[helmrelease.HookEvent]bool
	// deleted are those that were asked to go, are known to be gone, or were let go of.
	deleted map[record.ObjectKey]going
	// recreates is the object that is deleted to be made again; none if it is zero.
	recreates      record.ObjectKey
	recreatesSince time.Time
	// deferredSince is when the step that is under way was first stopped by what may come by itself; zero if it isn't.
	deferredSince time.Time
	// pruned says that nothing is left to be pruned.
	pruned bool
	// appliedAt is when all objects were applied, if the record doesn't say so yet; else zero.
	appliedAt time.Time
	pods      podLook
	// asDeployed are objects which the deployed revision applied just as they are wanted now.
	asDeployed map[record.ObjectKey]record.Entry
}

// hookRuns are the runs of hooks, as they are after what a version of the record says.
type hookRuns struct {
	version string
	runs    []record.HookRun
}

type subject struct {
	revision types.UID // of the record
	removing bool
}

// applied is an object as it was left, with its status when it was applied.
type applied struct {
	observe.Object
	uid     types.UID
	fields  drift.Fields // that we own
	watched bool
	left    bool // as it was: it isn't ours
}

// going is an object that was deleted and may still be there.
type going struct {
	entry  record.Entry
	object observe.Object
	since  time.Time
	// unlabelled says that the watch doesn't show the object: Helm made it.
	unlabelled bool
	// over says that nothing is to be done about it any more.
	over bool
}

// podLook is why pods of a revision's workloads didn't run when they were looked at last, and when to look again. A
// session has one. Losing it has them looked at once more.
type podLook struct {
	found *health.Finding // nil if nothing was seen
	about record.ObjectKey
	next  time.Time
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
				contents: &contents{store: d.storeOf(t, r)},
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
				s.contents = &contents{store: d.storeOf(t, r)}
			}
			s.store.Client = t.own() // a new one after each reconnection
			return s
		}
		s.mu.Unlock() // it was settled or forgotten while we waited for it
	}
}

// storeOf has a release's records, for who looks at them apart from a session.
func (d *Deliverer) storeOf(t Target, r Release) *record.Store {
	return &record.Store{Client: t.own(), Release: r, Clock: d.options.Clock, FieldManager: object.FieldManager(r)}
}

func (s *session) turn(about subject) {
	s.tracker.Stop()
	s.keep(nil, nil)
	s.progress = &progress{
		about: about, applied: map[record.ObjectKey]*applied{}, hooks: map[record.HookKey]*applied{},
		cleaned: map[helmrelease.HookEvent]bool{}, deleted: map[record.ObjectKey]going{},
	}
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
		r.records = slices.Clone(r.s.records)
		return nil
	}
	r.s.listedAt = r.now()
	return r.list(ctx)
}

func (r *call) list(ctx context.Context) error {
	var err error
	r.records, err = r.s.store.List(ctx)
	return err
}

// remember leaves the records to the session, if they are as they were written last.
func (r *call) remember(err error) {
	switch {
	case err == nil && r.rec == nil && len(r.records) == 0: // as while its source is asked
	case err == nil && r.rec != nil && len(r.records) > 0 && r.records[0].UID == r.rec.UID:
		r.records[0] = r.rec.Summary
	default:
		r.s.listedAt = time.Time{}
		return
	}
	r.s.records = r.records
}

// end leaves the session to the next call, and the memory to others.
func (r *call) end(ctx context.Context) {
	defer r.s.mu.Unlock()
	if r.rec != nil && r.rec.State != nil && slices.ContainsFunc(r.rec.State.Hooks, func(h record.HookRun) bool {
		return h.Phase == helmrelease.HookPhaseRunning
	}) {
		r.s.running = hookRuns{r.rec.ResourceVersion, slices.Clone(r.rec.State.Hooks)}
	}
	r.memory.claim.End()
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
