// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
)

type edit = func(*addonsv1.ProviderInstance)

// pi is a ProviderInstance of namespace team-a that claims this namespace.
func pi(name string, edits ...edit) addonsv1.ProviderInstance {
	pi := addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: []string{"team-a"}, Version: "v1.2.3", Holder: name + "-1", Claim: addonsv1.ScopeClaiming, ExpirySeconds: 40,
		},
	}
	for _, edit := range edits {
		edit(&pi)
	}
	return pi
}

func has(state addonsv1.GrantState) edit {
	return func(pi *addonsv1.ProviderInstance) {
		pi.Status.Grant = &addonsv1.ScopeGrant{Holder: pi.Spec.Holder, State: state}
	}
}

func waits(pi *addonsv1.ProviderInstance)     { pi.Spec.Claim = addonsv1.ScopeWaiting }
func newHolder(pi *addonsv1.ProviderInstance) { pi.Spec.Holder = "next" }
func leased(pi *addonsv1.ProviderInstance)    { pi.Spec.LeaseName = "lease" }

func deleting(pi *addonsv1.ProviderInstance) {
	now := metav1.Now()
	pi.DeletionTimestamp = &now
}

func markedExpired(pi *addonsv1.ProviderInstance) {
	pi.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Reason: addonsv1.HeartbeatExpiredReason}}
}

func scope(filter string, namespaces ...string) edit {
	return func(pi *addonsv1.ProviderInstance) { pi.Spec.Namespaces, pi.Spec.WatchFilter = namespaces, filter }
}

const (
	reserved = addonsv1.GrantReserved
	granted  = addonsv1.GrantGranted
	refused  = addonsv1.GrantRefused
)

// TestAnswers has the next answer to the claim of an instance, beside others.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		mine   addonsv1.ProviderInstance
		others []addonsv1.ProviderInstance
		want   addonsv1.GrantState // "" if there is nothing to write
	}{
		"the first instance":                     {mine: pi("m"), want: reserved},
		"the second step":                        {mine: pi("m", has(reserved)), want: granted},
		"nothing is left to do":                  {mine: pi("m", has(granted))},
		"it waits":                               {mine: pi("m", waits)},
		"it is being deleted":                    {mine: pi("m", deleting)},
		"it was gone, and hasn't come back":      {mine: pi("m", has(refused), markedExpired)},
		"the next leader":                        {mine: pi("m", has(granted), newHolder), want: reserved},
		"the reservation of a previous holder":   {mine: pi("m", has(reserved), newHolder), want: reserved},
		"beside one that is granted":             {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted))}, want: refused},
		"beside one that is being deleted":       {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted), deleting)}, want: refused},
		"beside one whose leader changes":        {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted), newHolder)}, want: refused},
		"reserved beside one that is granted":    {mine: pi("m", has(reserved)), others: []addonsv1.ProviderInstance{pi("z", has(granted))}, want: refused},
		"beside one that is reserved":            {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("z", has(reserved))}, want: refused},
		"both reserved, the other comes first":   {mine: pi("m", has(reserved)), others: []addonsv1.ProviderInstance{pi("a", has(reserved))}, want: refused},
		"both reserved, it comes first":          {mine: pi("m", has(reserved)), others: []addonsv1.ProviderInstance{pi("z", has(reserved), markedExpired)}},
		"beside one that is refused":             {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(refused), markedExpired)}, want: reserved},
		"beside one that expired":                {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(addonsv1.GrantExpired), markedExpired)}, want: reserved},
		"beside one that gave it up":             {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted), waits)}, want: reserved},
		"refused, and then it is free":           {mine: pi("m", has(refused)), want: reserved},
		"beside another filter":                  {mine: pi("m", scope("green", "team-a")), others: []addonsv1.ProviderInstance{pi("a", has(granted), scope("blue", "team-a"))}, want: reserved},
		"beside other namespaces":                {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted), scope("", "team-b", "team-c"))}, want: reserved},
		"beside one for all namespaces":          {mine: pi("m"), others: []addonsv1.ProviderInstance{pi("a", has(granted), scope(""))}, want: refused},
		"a filter beside one for all namespaces": {mine: pi("m", scope("blue", "team-b")), others: []addonsv1.ProviderInstance{pi("a", has(granted), scope(""))}, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			changes, _ := grant.NewMemory(testclock.NewFakePassiveClock(time.Now())).Evaluate(append(tc.others, tc.mine), time.Now())
			got := addonsv1.GrantState("")
			for _, c := range changes {
				if c.After.Name == "m" {
					got = c.After.Status.Grant.State
					if c.After.Status.Grant.Holder != tc.mine.Spec.Holder {
						t.Errorf("it answers holder %s", c.After.Status.Grant.Holder)
					}
				}
			}
			if got != tc.want {
				t.Errorf("it becomes %q, want %q", got, tc.want)
			}
		})
	}
}

// A deleted object keeps its scope for its process, and not from that process or one that a lease keeps apart from it.
func TestDeletedObjects(t *testing.T) {
	again := func(pi *addonsv1.ProviderInstance) { pi.UID = "another" }
	for name, tc := range map[string]struct {
		deleted, mine addonsv1.ProviderInstance
		watched       bool
		passes        time.Duration
		want          addonsv1.GrantState
	}{
		"another instance":                    {deleted: pi("a", has(granted)), mine: pi("m"), watched: true, want: refused},
		"no watch has shown the end":          {deleted: pi("a", has(granted)), mine: pi("m"), want: refused},
		"it would have expired":               {deleted: pi("a", has(granted)), mine: pi("m"), watched: true, passes: 40 * time.Second, want: reserved},
		"it was only reserved":                {deleted: pi("a", has(reserved)), mine: pi("m"), watched: true, want: refused},
		"it was refused":                      {deleted: pi("a", has(refused)), mine: pi("m"), watched: true, want: reserved},
		"it had given the scope up":           {deleted: pi("a", has(granted), waits), mine: pi("m"), watched: true, want: reserved},
		"made again by its process":           {deleted: pi("m", has(granted)), mine: pi("m", again), watched: true, want: reserved},
		"made again by another process":       {deleted: pi("m", has(granted)), mine: pi("m", again, newHolder), watched: true, want: refused},
		"made again by the next leader":       {deleted: pi("m", has(granted), leased), mine: pi("m", again, newHolder, leased), watched: true, want: reserved},
		"of the same process, another object": {deleted: pi("a", has(granted), newHolder), mine: pi("m", newHolder), watched: true, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Now())
			memory := grant.NewMemory(clock)
			memory.Evaluate([]addonsv1.ProviderInstance{tc.deleted}, clock.Now())
			if tc.watched {
				memory.Vanish(&tc.deleted)
			}
			clock.SetTime(clock.Now().Add(tc.passes))
			changes, _ := memory.Evaluate([]addonsv1.ProviderInstance{tc.mine}, clock.Now())
			if len(changes) != 1 || changes[0].After.Status.Grant.State != tc.want {
				t.Errorf("%+v, want %s", changes, tc.want)
			}
		})
	}
}

// TestLateLists show an instance as it was before it gave its scope up and was deleted.
func TestLateLists(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	memory := grant.NewMemory(clock)
	asOf := clock.Now()
	clock.SetTime(asOf.Add(time.Second))
	last := pi("a", has(granted), waits)
	memory.Vanish(&last)
	memory.Evaluate([]addonsv1.ProviderInstance{pi("a", has(granted))}, asOf)
	clock.SetTime(asOf.Add(2 * time.Second))
	changes, _ := memory.Evaluate([]addonsv1.ProviderInstance{pi("m")}, clock.Now())
	if len(changes) != 1 || changes[0].After.Status.Grant.State != reserved {
		t.Errorf("the next instance isn't granted the scope that is free: %+v", changes)
	}
}

// Who makes and deletes instances can't fill the memory: of a namespace, so many deleted ones are remembered.
func TestDeletedObjectsAreFew(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	memory := grant.NewMemory(clock)
	for i := range 100 {
		old := pi(fmt.Sprint(i), has(granted), scope("", fmt.Sprint("team-", i)))
		memory.Vanish(&old)
	}
	remembered := 0
	for i := range 100 {
		changes, _ := memory.Evaluate([]addonsv1.ProviderInstance{pi("m", scope("", fmt.Sprint("team-", i)))}, clock.Now())
		if changes[0].After.Status.Grant.State == refused {
			remembered++
		}
	}
	if remembered != 64 {
		t.Errorf("%d are remembered", remembered)
	}
}

// TestSilence has an instance expire by what is seen to change, and by when it was asked for.
func TestSilence(t *testing.T) {
	start := time.Now()
	clock := testclock.NewFakePassiveClock(start)
	memory := grant.NewMemory(clock)
	beat := func(n int64) addonsv1.ProviderInstance {
		return pi("m", has(granted), func(pi *addonsv1.ProviderInstance) { pi.Status.HeartbeatTime = metav1.NewMicroTime(time.UnixMicro(n)) })
	}
	for _, step := range []struct {
		second, asOf int
		heartbeat    int64 // its value says nothing
		expires      bool
	}{
		{0, 0, 9, false}, {39, 39, 9, false}, {39, 39, 3, false}, {78, 78, 3, false},
		{100, 78, 3, false}, // the answer took long
		{100, 79, 3, true}, {101, 101, 4, false}, {140, 140, 4, false}, {141, 141, 4, true},
	} {
		clock.SetTime(start.Add(time.Duration(step.second) * time.Second))
		changes, _ := memory.Evaluate([]addonsv1.ProviderInstance{beat(step.heartbeat)}, start.Add(time.Duration(step.asOf)*time.Second))
		if (len(changes) > 0) != step.expires {
			t.Errorf("%+v: %d changes", step, len(changes))
		}
	}
}

// The message is the same each time, since it is that of a condition, whatever the order of a list.
func TestRefusalsNameTheHolder(t *testing.T) {
	rival := pi("rival", has(granted), scope("blue", "team-a", "team-b"), func(pi *addonsv1.ProviderInstance) { pi.Namespace, pi.Spec.Version = "elsewhere", "v9" })
	second, mine := pi("a", has(reserved), scope("", "team-b"), markedExpired), pi("mine", scope("", "team-b", "team-c"))
	want := "ProviderInstance elsewhere/rival (objects with watch filter blue in namespaces team-a, team-b; version v9) holds objects with watch filter blue in namespace team-b, and 1 more overlap. " +
		"The scope is free when that instance ends, or 40s after its last heartbeat; or start this one with another --namespace or --watch-filter"
	for _, list := range [][]addonsv1.ProviderInstance{{mine, rival, second}, {second, rival, mine}} {
		changes, _ := grant.NewMemory(testclock.NewFakePassiveClock(time.Now())).Evaluate(list, time.Now())
		if len(changes) != 1 || changes[0].After.Status.Grant.Message != want {
			t.Errorf("%+v; want\n%s", changes[0].After.Status.Grant, want)
		}
	}
}
