// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Going are objects that were asked to go, are known to be gone, or were let go of.
//
// Key: the object.
// Bound: the objects of one add-on.
// Lost with it: they are looked at again.
type Going struct {
	mu  sync.Mutex
	all map[record.ObjectKey]Object
}

// Object was deleted and may still be there.
type Object struct {
	entry  record.Entry
	object observe.Object
	since  time.Time
	// unlabelled says that the watch doesn't show the object: Helm made it.
	unlabelled bool
	// over says that nothing is to be done about it any more.
	over bool
}

// NewGoing returns none.
func NewGoing() *Going { return &Going{all: map[record.ObjectKey]Object{}} }

// Forget forgets an object that is gone, and doesn't watch it any more.
func (s *Going) Forget(key record.ObjectKey, tracker *observe.Tracker) {
	if g, asked := s.all[key]; asked {
		tracker.Untrack(g.object.Resource, g.object.Key)
		delete(s.all, key)
	}
}

// IsOver reports whether nothing is to be done about an object any more.
func (s *Going) IsOver(key record.ObjectKey) bool { return s.get(key).over }

// Left returns the object if it was asked to go and may still be there.
func (s *Going) Left(key record.ObjectKey) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, asked := s.all[key]
	return g, asked && !g.over
}

func (s *Going) get(key record.ObjectKey) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[key]
}

func (s *Going) end(key record.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key] = Object{over: true}
}

// note remembers an object that was asked to go, which says since when if that was before.
func (s *Going) note(g Object, since *metav1.Time) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, asked := s.all[g.entry.Key()]; asked && !was.over {
		g.since = was.since
	} else if since != nil {
		g.since = since.Time
	}
	s.all[g.entry.Key()] = g
	return g
}
