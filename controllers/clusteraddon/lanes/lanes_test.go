// SPDX-License-Identifier: Apache-2.0

package lanes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/lanes"
	"github.com/cluster-chandler/chandler/fleet/budget"
)

// laneTest is lanes of four workers, so with room for two slow passes.
type laneTest struct {
	*lanes.Lanes
	time *testingclock.FakeClock
}

func newLaneTest() *laneTest {
	return newLanes(4)
}

// newLanes returns the lanes of a number of workers, with a clock of their own.
func newLanes(workers int) *laneTest {
	clock := testingclock.NewFakeClock(time.Now())
	return &laneTest{Lanes: lanes.New(workers, clock), time: clock}
}

// begin starts a reconcile that has to be let in.
func (l *laneTest) begin(t *testing.T, name string) (context.Context, func(unreachable bool)) {
	t.Helper()
	ctx, leave, ok := l.Enter(t.Context(), client.ObjectKey{Name: name})
	if !ok {
		t.Fatalf("%s wasn't let in", name)
	}
	return ctx, leave
}

func (l *laneTest) refused(t *testing.T, name string) {
	t.Helper()
	if _, _, ok := l.Enter(t.Context(), client.ObjectKey{Name: name}); ok {
		t.Fatalf("%s was let in", name)
	}
}

// A reconcile that waits for memory is slow at once, so that clusters of other namespaces find workers.
func TestPassesThatWaitForMemoryHoldHalfOfTheWorkers(t *testing.T) {
	l := newLaneTest()
	memory := budget.New(budget.Limits{All: 1})
	if !memory.Claim(budget.Tenant{}, 1).Try(1) {
		t.Fatal("no memory")
	}
	var contexts []context.Context
	for _, name := range []string{"a", "b", "c", "d"} {
		ctx, _ := l.begin(t, name)
		contexts = append(contexts, ctx)
	}
	yielded := make(chan error)
	for _, ctx := range contexts {
		go func() { yielded <- memory.Claim(budget.Tenant{}, 1).Grow(ctx, 1) }()
	}
	for range 2 {
		if err := <-yielded; !errors.Is(err, lanes.ErrYield) {
			t.Error(err)
		}
	}
	for _, ctx := range contexts {
		if err := context.Cause(ctx); err != nil && !errors.Is(err, lanes.ErrYield) {
			t.Error(err)
		}
	}
	l.refused(t, "a")
	l.begin(t, "healthy")
}

func TestPassesThatTakeLongHoldHalfOfTheWorkers(t *testing.T) {
	l := newLaneTest()
	var contexts []context.Context
	var leaves []func(bool)
	for _, name := range []string{"a", "b", "c", "d"} {
		ctx, leave := l.begin(t, name)
		contexts, leaves = append(contexts, ctx), append(leaves, leave)
	}
	l.time.Step(lanes.SlowAfter)
	ended := 0
	for _, ctx := range contexts {
		if errors.Is(context.Cause(ctx), lanes.ErrYield) {
			ended++
		} else if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
	}
	if ended != 2 {
		t.Fatalf("%d of 4 gave way", ended)
	}
	for i, leave := range leaves {
		if contexts[i].Err() != nil {
			leave(true)
			l.refused(t, []string{"a", "b", "c", "d"}[i])
			l.refused(t, []string{"a", "b", "c", "d"}[i])
		}
	}
	_, healthy := l.begin(t, "healthy")
	healthy(false)
	for i, leave := range leaves {
		if contexts[i].Err() == nil {
			leave(false)
		}
	}
	for i, ctx := range contexts {
		if errors.Is(context.Cause(ctx), lanes.ErrYield) {
			l.begin(t, []string{"a", "b", "c", "d"}[i])
		}
	}
}

// A cluster that was slow, or unreachable, is let in with others again once a reconcile was quick, or it has been forgotten.
func TestClustersBecomeSlowAndQuick(t *testing.T) {
	l := newLaneTest()
	quick := func(name string) { _, leave := l.begin(t, name); leave(false) }
	for _, name := range []string{"a", "b", "c"} {
		_, leave := l.begin(t, name)
		leave(true)
	}
	_, a := l.begin(t, "a")
	_, b := l.begin(t, "b")
	l.refused(t, "c")
	l.Forget(client.ObjectKey{Name: "c"})
	quick("c")
	a(false)
	quick("a")
	_, c := l.begin(t, "c")
	_, again := l.begin(t, "a")
	for _, leave := range []func(bool){b, c, again} {
		leave(false)
	}
	for _, name := range []string{"a", "b", "c"} { // none counts as slow any more, and none holds room
		l.begin(t, name)
	}
}

// One namespace has at most three quarters of the lanes for slow passes, whether these were slow before or become so.
func TestSlowClustersOfOneNamespaceLeaveRoom(t *testing.T) {
	l := newLanes(16)
	enter := func(namespace string, i int) (context.Context, func(bool), bool) {
		return l.Enter(t.Context(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(i)})
	}
	for i := range 12 {
		_, leave, _ := enter("mallory", i)
		leave(true)
	}
	in := 0
	for i := range 12 {
		if _, _, ok := enter("mallory", i); ok {
			in++
		}
	}
	becomes, _, _ := enter("mallory", 12)
	victim, _, _ := enter("victim", 0)
	l.time.Step(lanes.SlowAfter)
	if in != 6 || !errors.Is(context.Cause(becomes), lanes.ErrYield) || victim.Err() != nil {
		t.Errorf("%d of 8 lanes are one namespace's; a further pass of it ended with %v, and another one's with %v", in, context.Cause(becomes), victim.Err())
	}
}

// Two namespaces whose clusters are slow leave a lane to a third one.
func TestSlowClustersOfTwoNamespacesLeaveRoom(t *testing.T) {
	l := newLanes(16)
	enter := func(namespace string, i int) (func(bool), bool) {
		_, leave, ok := l.Enter(t.Context(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(i)})
		return leave, ok
	}
	slow := func(namespace string) {
		for i := range 6 {
			leave, _ := enter(namespace, i)
			leave(true)
		}
	}
	slow("mallory")
	slow("eve")
	slow("victim")
	in := map[string]int{}
	for _, namespace := range []string{"mallory", "eve", "victim"} {
		for i := range 6 {
			if _, ok := enter(namespace, i); ok {
				in[namespace]++
			}
		}
	}
	if in["mallory"]+in["eve"] != 7 || in["victim"] != 1 {
		t.Errorf("of 8 lanes they have %v", in)
	}
}
