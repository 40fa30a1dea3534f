// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// LastSeen returns when an event last happened.
func LastSeen(e *eventsv1.Event) time.Time {
	last := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.DeprecatedLastTimestamp.Time} {
		if t.After(last) {
			last = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}

// SortEvents puts events in the order of time. With a name, those about other objects are left out.
func SortEvents(events []eventsv1.Event, name string) []eventsv1.Event {
	events = slices.DeleteFunc(events, func(e eventsv1.Event) bool { return name != "" && e.Regarding.Name != name })
	slices.SortStableFunc(events, func(a, b eventsv1.Event) int { return LastSeen(&a).Compare(LastSeen(&b)) })
	return events
}
