// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// absences remembers the AddonStacks that were there, since when they are as they are, and those that are gone.
//
// Key: the AddonStack; of wholeness, the namespace.
// Bound: a day after a stack was last asked about.
// Lost with it: each removal that hasn't begun does so deletionGrace later; an edit that comes just before a deletion, and a
// crash between, is lost. Whether the stack went with its CRD is seen by the CRD's age.
type absences struct {
	clock clock.Clock

	mu     sync.Mutex
	stacks *cache.Expiring // client.ObjectKey to absence
	whole  *cache.Expiring // namespace to wholeness, for the many clusters of a stack that ask
}

// absence is that of one AddonStack.
type absence struct {
	// seen is when the stack was there, and since from when on it wasn't; zero if nobody saw that.
	seen, since time.Time
	// last has the policies of the stack as it was last written; zero if that wasn't seen.
	last addonsv1.StackRevision
	// amidst is set if the stack was deleted with its CRD or its namespace. Such a deletion is no
	// wish to uninstall.
	amidst bool
	// is says what is in force of a stack that is there, and changed when this process first saw that.
	is      string
	changed time.Time
}

// absenceKept is how long a stack is remembered.
const absenceKept = 24 * time.Hour

func newAbsences(clock clock.Clock) absences {
	return absences{clock: clock, stacks: cache.NewExpiringWithClock(clock), whole: cache.NewExpiringWithClock(clock)}
}

// absent notes that a stack isn't there, and returns since when. It was there when it was last seen, or when a
// ClusterAddon was made that it is assigned to.
func (a *absences) absent(key client.ObjectKey, made time.Time, whole wholeness) (since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stack := a.of(key)
	if stack.since.IsZero() {
		stack.since = a.clock.Now()
	}
	if !stack.seen.IsZero() {
		made = stack.seen
	}
	stack.amidst = stack.amidst || !whole.now || whole.since.After(made)
	a.stacks.Set(key, stack, absenceKept)
	return stack.since
}

// present notes that stacks are there.
func (a *absences) present(namespace string, candidates []candidate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range candidates {
		c, now := &candidates[i], a.clock.Now()
		key, is := stackKey(namespace, c.name), absence{seen: now, last: c.at(""), is: fmt.Sprint(c.generation, c.revision, c.newest()), changed: now}
		if was := a.of(key); was.is == is.is && was.since.IsZero() {
			is.changed = was.changed
		}
		a.stacks.Set(key, is, absenceKept)
	}
}

// note notes what is written in a stack. It may be gone before any cluster is decided on.
func (a *absences) note(s *addonsv1.AddonStack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(s)
	of := a.of(key)
	of.last = (&candidate{name: s.Name, spec: s.Spec, paused: annotations.HasPaused(s)}).at("")
	a.stacks.Set(key, of, absenceKept)
}

// isAmidst reports whether a stack went with its CRD or its namespace.
func (a *absences) isAmidst(key client.ObjectKey) bool { return a.of(key).amidst }

// of returns what is remembered of a stack, zero for nothing.
func (a *absences) of(key client.ObjectKey) absence {
	known, _ := a.stacks.Get(key)
	of, _ := known.(absence)
	return of
}

// wholeness says whether neither our CRDs nor a namespace are being deleted, or gone.
type wholeness struct {
	now bool
	// since is when the CRD of AddonStacks was made, which none of them has outlived. Zero if that may not be read.
	since time.Time
}
