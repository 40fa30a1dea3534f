// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// beat returns the instance after another heartbeat, whose time says nothing.
func beat(pi *addonsv1.ProviderInstance, resourceVersion string, at int64) *addonsv1.ProviderInstance {
	next := pi.DeepCopy()
	next.ResourceVersion = resourceVersion
	next.Status.HeartbeatTime = metav1.NewMicroTime(time.UnixMicro(at))
	return next
}

func items(instances ...*addonsv1.ProviderInstance) []addonsv1.ProviderInstance {
	var list []addonsv1.ProviderInstance
	for _, pi := range instances {
		list = append(list, *pi)
	}
	return list
}

func observer() (*Observer, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return NewObserver(clock), clock
}

// An instance is alive for its expiry after the last change, by the observer's
// clock, however far the time in the heartbeat is off.
func TestLifeIsSeenByChange(t *testing.T) {
	o, clock := observer()
	pass := func(seconds int) { clock.SetTime(clock.Now().Add(time.Duration(seconds) * time.Second)) }
	instance := pi("x", active) // expires after 40 s
	for i, step := range []struct {
		after     int
		seen      *addonsv1.ProviderInstance
		remaining time.Duration
	}{
		{0, instance, 40 * time.Second}, // never seen: alive from now
		{39, instance, time.Second},
		{1, instance, 0},
		{0, beat(instance, "2", 5), 40 * time.Second}, // in 1970
		{30, beat(instance, "3", 4), 40 * time.Second},
		{39, beat(instance, "4", 4), time.Second}, // something else of the object changed
		{5, beat(instance, "5", 3), 40 * time.Second},
		{50, beat(instance, "6", 3), -10 * time.Second},
	} {
		pass(step.after)
		if got := o.Read(step.seen, clock.Now()); got != step.remaining {
			t.Errorf("step %d: Read() = %v; want %v", i, got, step.remaining)
		}
	}
	taken := beat(instance, "7", 3)
	taken.Generation++
	if got := o.Read(taken, clock.Now()); got != 40*time.Second {
		t.Errorf("a write of spec: Read() = %v; want 40s", got)
	}
}

// An answer that was on its way for long counts from when the question was sent.
func TestSlowAnswersLetNobodyDieEarly(t *testing.T) {
	o, clock := observer()
	instance := pi("x", active)
	o.Noticed(instance)
	sent := clock.Now().Add(39 * time.Second)
	clock.SetTime(sent.Add(20 * time.Second))
	if known := o.Listed(items(instance), sent); known[0].Remaining != time.Second {
		t.Errorf("an unchanged one: %v; want 1s", known[0].Remaining)
	}
	if known := o.Listed(items(beat(instance, "2", 1)), sent); known[0].Remaining < 40*time.Second {
		t.Errorf("a changed one: %v; want at least 40s", known[0].Remaining)
	}
}

// A watch that lags behind a LIST must not count as life.
func TestLateWatchEventsAreNoSigns(t *testing.T) {
	o, clock := observer()
	instance := pi("x", active)
	newest := beat(instance, "12", 2)
	o.Listed(items(newest), clock.Now())
	clock.SetTime(clock.Now().Add(30 * time.Second))
	o.Noticed(beat(instance, "9", 1))
	if got := o.Read(newest, clock.Now()); got != 10*time.Second {
		t.Errorf("Read() = %v; want 10s", got)
	}
}

// After a restore from a backup versions start again: consistent reads count.
func TestVersionsMayStartAgain(t *testing.T) {
	o, clock := observer()
	instance := pi("x", active)
	o.Noticed(beat(instance, "1000", 7))
	clock.SetTime(clock.Now().Add(30 * time.Second))
	restored := beat(instance, "20", 3)
	if got := o.Read(restored, clock.Now()); got != 40*time.Second {
		t.Errorf("Read() = %v; want 40s", got)
	}
	clock.SetTime(clock.Now().Add(30 * time.Second))
	o.Noticed(beat(instance, "21", 4))
	if got := o.Read(beat(instance, "21", 4), clock.Now()); got != 40*time.Second {
		t.Errorf("a watch after it: %v; want 40s", got)
	}
}

func TestDeletedObjectsHoldUntilTheyExpire(t *testing.T) {
	for name, tc := range map[string]struct {
		claim   addonsv1.ScopeClaim
		watched bool // the watch showed the deletion, and not only the LIST
		holds   bool
	}{
		"active":             {active, true, true},
		"active, unwatched":  {active, false, true},
		"claiming":           {claiming, true, true},
		"waiting":            {waiting, true, false},
		"waiting, unwatched": {waiting, false, true}, // judge lets it hold nothing
	} {
		t.Run(name, func(t *testing.T) {
			o, clock := observer()
			o.Listed(items(pi("x", tc.claim)), clock.Now())
			clock.SetTime(clock.Now().Add(39 * time.Second))
			if tc.watched {
				o.Vanished(pi("x", tc.claim))
			}
			known := o.Listed(nil, clock.Now())
			if holds := len(known) == 1 && known[0].Deleted && known[0].Remaining == time.Second; holds != tc.holds {
				t.Errorf("Listed() = %+v; holds should be %v", known, tc.holds)
			}
			clock.SetTime(clock.Now().Add(time.Second))
			if known := o.Listed(nil, clock.Now()); len(known) != 0 || len(o.sightings) != 0 {
				t.Errorf("after its expiry: Listed() = %+v, and %d are remembered", known, len(o.sightings))
			}
		})
	}
}

func BenchmarkListedAndJudged(b *testing.B) {
	o, clock := observer()
	var list []addonsv1.ProviderInstance
	for i := range 1000 {
		other := pi(fmt.Sprint("other-", i), active, scope("", fmt.Sprint("a-", i), fmt.Sprint("b-", i)))
		other.UID = types.UID(fmt.Sprint(i))
		list = append(list, *other)
	}
	for b.Loop() {
		if judge(nil, pi("mine", claiming), o.Listed(list, clock.Now())) != nil {
			b.Fatal("refused")
		}
	}
}
