// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Schedule is when a stack's sources are looked at: once in each interval, at a moment that depends on
// the stack alone. So a restart makes no wave of requests.
type Schedule struct {
	interval, phase time.Duration
}

// ScheduleOf a stack.
func ScheduleOf(uid types.UID, updates *addonsv1.Updates) Schedule {
	interval := addonsv1.DefaultUpdateInterval
	if updates != nil && updates.Interval != nil && updates.Interval.Duration > 0 {
		interval = updates.Interval.Duration
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(uid)) // it never fails
	return Schedule{interval: interval, phase: time.Duration(sum.Sum64() % uint64(interval))}
}

// Interval between two looks.
func (s Schedule) Interval() time.Duration { return s.interval }

// Next is the first moment after a time.
func (s Schedule) Next(after time.Time) time.Time {
	since := time.Duration(after.UnixNano()) - s.phase
	return after.Add(s.interval - since%s.interval)
}
