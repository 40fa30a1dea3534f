// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/health"
)

// healthMemory is what is remembered of the objects of an add-on that is installed. Losing it has them looked at, and
// what is wrong with them counted from then on.
type healthMemory struct {
	revision int
	looked   bool // at all of them, since the cluster was connected
	objects  map[deliver.ObjectKey]objectHealth
}

// objectHealth is what was seen of an object last.
type objectHealth struct {
	before  health.Before
	finding *health.Finding // nil if nothing is wrong
	since   time.Time       // when it was found first
}

// note takes in how an object is now.
func (m *healthMemory) note(key deliver.ObjectKey, is objectHealth, now time.Time) {
	was := m.objects[key]
	switch {
	case is.finding == nil && is.before == (health.Before{}):
		delete(m.objects, key)
		return
	case is.finding != nil && was.finding != nil && isSameFinding(was.finding, is.finding):
		is.since = was.since
	case is.finding != nil:
		is.since = now
	}
	m.objects[key] = is
}

// noteReady takes in that each object was found ready.
func (m *healthMemory) noteReady(found map[deliver.ObjectKey]observe.Status) {
	m.looked = true
	for key, is := range found {
		if is.Available > 0 {
			m.objects[key] = objectHealth{before: health.Before{Available: is.Available}}
		}
	}
}

// countFrom has all that is wrong count as found at that time.
func (m *healthMemory) countFrom(since time.Time) {
	for key, is := range m.objects {
		if is.finding != nil {
			is.since = since
			m.objects[key] = is
		}
	}
}

// worst returns the object that something has been wrong with for the longest time, and its key; nil if nothing is wrong.
func (m *healthMemory) worst() (worst *objectHealth, of deliver.ObjectKey) {
	for key, is := range m.objects {
		if is.finding == nil {
			continue
		}
		if worst == nil || is.since.Before(worst.since) || is.since.Equal(worst.since) && key.String() < of.String() {
			worst, of = &is, key
		}
	}
	return worst, of
}

// healths are those of a cluster's add-ons, by release.
type healths map[deliver.Release]*healthMemory

// of returns the memory of an add-on's revision. Nothing is wrong with a new one at first, and its workloads
// have as many replicas as before.
func (h healths) of(release deliver.Release, revision int) *healthMemory {
	known := h[release]
	if known == nil || known.revision != revision {
		next := &healthMemory{revision: revision, objects: map[deliver.ObjectKey]objectHealth{}}
		if known != nil {
			for key, is := range known.objects {
				next.objects[key] = objectHealth{before: is.before}
			}
		}
		known, h[release] = next, next
	}
	return known
}

// isSameFinding reports whether a finding continues. The new one keeps what the earlier one is about, if it doesn't say.
func isSameFinding(was, is *health.Finding) bool {
	if is.Seen == "" {
		is.Seen = was.Seen
	}
	return was.Seen == "" || was.Seen == is.Seen
}
