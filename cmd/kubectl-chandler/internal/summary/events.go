// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/ptr"
)

// LastSeen returns when an event last happened.
func LastSeen(e *eventsv1.Event) time.Time {
	repeated := ptr.Deref(e.Series, eventsv1.EventSeries{}).LastObservedTime
	return slices.MaxFunc([]time.Time{e.CreationTimestamp.Time, e.EventTime.Time, e.DeprecatedLastTimestamp.Time, repeated.Time}, time.Time.Compare)
}
