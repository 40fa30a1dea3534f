// SPDX-License-Identifier: Apache-2.0

// Package ready tells which objects of a revision aren't ready, and why, and watches these.
package ready

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// Objects are the objects of a revision that were applied. They can be noted in parallel.
//
// Key: the object.
// Bound: the objects of one add-on.
// Lost with it: they are applied again.
type Objects struct {
	tracker *observe.Tracker

	mu    sync.Mutex
	all   map[record.ObjectKey]*Applied
	begun bool // one was applied
}

// Applied is an object as it was left, with its status when it was applied.
type Applied struct {
	observe.Object
	UID    types.UID
	Fields drift.Fields // that the add-on owns
	Left   bool         // as it was: it isn't the add-on's

	watched bool
}

// NewObjects returns none, of which the tracker watches those that are waited for.
func NewObjects(tracker *observe.Tracker) *Objects {
	return &Objects{tracker: tracker, all: map[record.ObjectKey]*Applied{}}
}

// Note remembers how an object was left.
func (s *Objects) Note(key record.ObjectKey, a *Applied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key], s.begun = a, true
}

// Get returns how an object was left; false if it wasn't applied, or is gone since.
func (s *Objects) Get(key record.ObjectKey) (*Applied, bool) {
	a, ok := s.all[key]
	if ok && a.watched && s.StatusOf(a).Phase == observe.Gone {
		delete(s.all, key)
		return nil, false
	}
	return a, ok
}

// StatusOf returns the newest status of an object.
func (s *Objects) StatusOf(a *Applied) observe.Status {
	if a.watched {
		if status, ok := s.tracker.Status(a.Resource, a.Key); ok {
			return status
		}
	}
	return a.Status
}

// Statuses returns the newest status of each object.
func (s *Objects) Statuses() map[record.ObjectKey]observe.Status {
	found := make(map[record.ObjectKey]observe.Status, len(s.all))
	for key, a := range s.all {
		found[key] = s.StatusOf(a)
	}
	return found
}

// Has reports whether an object was applied.
func (s *Objects) Has(key record.ObjectKey) bool {
	_, ok := s.all[key]
	return ok
}

// HasUID reports whether an object with the UID was applied.
func (s *Objects) HasUID(uid types.UID) bool {
	for _, a := range s.all {
		if a.UID == uid {
			return true
		}
	}
	return false
}

// IsEmpty reports whether no object was applied.
func (s *Objects) IsEmpty() bool { return !s.begun }

// Ready returns how many objects are ready.
func (s *Objects) Ready() (n int32) {
	for _, a := range s.all {
		if s.StatusOf(a).Phase == observe.Current {
			n++
		}
	}
	return n
}

// WithUIDs notes in entries the objects that are known to be the add-on's, with what it owns of them,
// and the namespaces that aren't.
func (s *Objects) WithUIDs(entries []record.Entry) []record.Entry {
	noted := slices.Clone(entries)
	for i := range noted {
		e := &noted[i]
		if a, ok := s.all[e.Key()]; ok {
			e.Shared = a.Left && e.GroupVersionKind().GroupKind() == object.NamespaceKind
			if !a.Left {
				e.UID, e.Fields = a.UID, a.Fields
			}
		}
	}
	return noted
}
