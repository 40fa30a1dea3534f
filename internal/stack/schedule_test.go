// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func TestScheduleTurns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		interval := time.Minute + time.Duration(random.Int64N(int64(24*time.Hour)))
		source, updates := string(uuid.NewUUID()), &addonsv1.Updates{Interval: &metav1.Duration{Duration: interval}}
		now := time.Unix(random.Int64N(4e9), random.Int64N(1e9))
		next := stack.NextPoll(source, updates, now)
		if !next.After(now) || next.Sub(now) > interval {
			t.Fatalf("interval %s: %s after %s", interval, next.Sub(now), now)
		}
		if again := stack.NextPoll(source, updates, next); again.Sub(next) != interval {
			t.Fatalf("interval %s: the turn after it comes %s later", interval, again.Sub(next))
		}
		if later := now.Add(time.Duration(random.Int64N(int64(next.Sub(now))))); !stack.NextPoll(source, updates, later).Equal(next) {
			t.Fatalf("a restart %s later moves the turn", later.Sub(now))
		}
	}
}

// A thousand sources aren't looked at together.
func TestScheduleSpreadsSources(t *testing.T) {
	now := time.Now()
	var minutes [10]int
	for range 1000 {
		source := string(uuid.NewUUID())
		next := stack.NextPoll(source, nil, now)
		if interval := stack.NextPoll(source, nil, next).Sub(next); interval != addonsv1.DefaultUpdateInterval {
			t.Fatalf("interval %s", interval)
		}
		wait := next.Sub(now)
		minutes[min(int(wait/time.Minute), 9)]++
	}
	for minute, count := range minutes {
		if count < 50 || count > 150 {
			t.Errorf("%d of 1000 sources are looked at in minute %d", count, minute)
		}
	}
}
