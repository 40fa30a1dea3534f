// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"time"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/health"
)

// HealthMemory is what is remembered of the objects of an add-on that is installed.
//
// Key: the add-on.
// Bound: the workloads of the add-on.
// Lost with it: all of them are looked at, and what is wrong with them counts from then on.
type HealthMemory struct {
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

// Note takes in how an object is now: what is wrong with it, nil for nothing, and how it is to be compared later.
func (m *HealthMemory) Note(key deliver.ObjectKey, finding *health.Finding, before health.Before, now time.Time) {
	is := objectHealth{before: before, finding: finding}
	if m.objects == nil {
		m.objects = map[deliver.ObjectKey]objectHealth{}
	}
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
func (m *HealthMemory) noteReady(found map[deliver.ObjectKey]observe.Status) {
	m.looked = true
	for key, is := range found {
		if is.Available > 0 {
			m.Note(key, nil, health.Before{Available: is.Available}, time.Time{})
		}
	}
}

// countFrom has all that is wrong count as found at that time.
func (m *HealthMemory) countFrom(since time.Time) {
	for key, is := range m.objects {
		if is.finding != nil {
			is.since = since
			m.objects[key] = is
		}
	}
}

// Worst returns what has been wrong for the longest time, since when, and with which object; nil if nothing is wrong.
func (m *HealthMemory) Worst() (worst *health.Finding, since time.Time, of deliver.ObjectKey) {
	for key, is := range m.objects {
		if is.finding == nil {
			continue
		}
		if worst == nil || is.since.Before(since) || is.since.Equal(since) && key.String() < of.String() {
			worst, since, of = is.finding, is.since, key
		}
	}
	return worst, since, of
}

// turnTo forgets what was wrong with another revision. Workloads of the new one have as many replicas as before.
func (m *HealthMemory) turnTo(revision int) {
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
