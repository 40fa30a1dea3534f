// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// LookNowPause is the least time between two polls that users ask for, as hosts limit requests.
const LookNowPause = 5 * time.Second

// Request is the last request of users: an edit of the spec, or the annotation look-now. The zero value is none.
type Request struct {
	Generation int64
	LookNow    string    // the value that is acted on
	Since      time.Time // zero if the value was there from the start
}

// Update takes up what is asked for now, and reports whether that is new. It returns how
// long a newer value of the annotation has to wait, 0 if there is none.
func (q *Request) Update(s *addonsv1.AddonStack, now time.Time) (isNew bool, wait time.Duration) {
	value, first := s.Annotations[addonsv1.LookNowAnnotation], q.Generation == 0
	isNew = !first && q.Generation != s.Generation
	q.Generation = s.Generation
	switch {
	case first:
		q.LookNow = value
	case value != q.LookNow:
		if wait = q.Since.Add(LookNowPause).Sub(now); wait > 0 {
			return isNew, wait
		}
		q.LookNow, q.Since, isNew = value, now, true
	}
	return isNew, 0
}
