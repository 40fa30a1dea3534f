// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/health"
)

// healthMemory is what is remembered of the objects of an add-on that is installed.
//
// Key: the add-on, as it is in addonMemory.
// Bound: the workloads of the add-on.
// Lost with it: all of them are looked at, and what is wrong with them counts from then on.
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

// turnTo forgets what was wrong with another revision. Workloads of the new one have as many replicas as before.
func (m *healthMemory) turnTo(revision int) {
	if m.revision != revision {
		m.revision, m.looked = revision, false
		for key, is := range m.objects {
			m.objects[key] = objectHealth{before: is.before}
		}
	}
}

// isSameFinding reports whether a finding continues. The new one keeps what the earlier one is about, if it doesn't say.
func isSameFinding(was, is *health.Finding) bool {
	if is.Seen == "" {
		is.Seen = was.Seen
	}
	return was.Seen == "" || was.Seen == is.Seen
}
