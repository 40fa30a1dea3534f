// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	isReady   = addonsv1.StackReady
	onTheWay  = addonsv1.StackProgressing
	hasFailed = addonsv1.StackFailed
	isStopped = addonsv1.StackState("")
)

// story is what happens to clusters of a stack that get other inputs.
type story struct {
	*decide.InputTurns
	now time.Time
}

// newStory begins with three clusters of which so many may be on their way, and so many may fail.
func newStory(concurrent, maxFailed int) *story {
	s := &story{&decide.InputTurns{Within: time.Hour}, noon}
	return s.know("a", "b", "c").with(concurrent, maxFailed)
}

func (s *story) know(clusters ...string) *story {
	for _, name := range clusters {
		s.Know(name, addonsv1.StackStatus{})
	}
	return s
}

func (s *story) with(concurrent, maxFailed int) *story {
	s.Concurrent, s.MaxFailed = concurrent, maxFailed
	return s
}

func (s *story) later() *story {
	s.now = s.now.Add(time.Hour)
	return s
}

// asks has clusters ask, and reports whether the last one may begin. One that may not is as it was.
func (s *story) asks(clusters ...string) (may bool) {
	for _, name := range clusters {
		is := isReady
		if slices.Contains(s.Failed(s.now), name) {
			is = hasFailed
		}
		if may = s.Ask(name, isReady, s.now, false); may {
			is = onTheWay
		}
		s.Settle(name, is)
	}
	return may
}

// is has a look show a state of a cluster, which doesn't ask.
func (s *story) is(name string, state addonsv1.StackState) *story {
	s.Settle(name, state)
	return s
}

// after is the story of one cluster that began, and what came of it.
func after(state addonsv1.StackState, concurrent, maxFailed int) *story {
	s := newStory(concurrent, maxFailed)
	s.asks("a")
	return s.is("a", state)
}

// restarted is the story of a process that finds one cluster in a state.
func restarted(state addonsv1.StackState, since time.Time) *story {
	s := &story{&decide.InputTurns{Within: time.Hour}, noon}
	s.Know("a", addonsv1.StackStatus{State: state, InputsChanged: metav1.NewTime(since)})
	return s.know("b").with(1, 0)
}

// Each rule of docs/reference/values.md about inputs outside of revisions is a row.
func TestInputTurns(t *testing.T) {
	wasIll := newStory(1, 0)
	wasIll.Ask("a", hasFailed, noon, false)
	for name, tc := range map[string]struct{ got, want bool }{
		"one alone begins at once":                             {newStory(1, 0).asks("a"), true},
		"a second one waits":                                   {newStory(1, 0).asks("a", "b"), false},
		"two may begin":                                        {newStory(2, 0).asks("a", "b"), true},
		"one that is on its way goes on":                       {newStory(1, 0).asks("a", "b", "a"), true},
		"none begins after one too many failed":                {after(hasFailed, 2, 0).asks("b"), false},
		"a Degraded one has failed":                            {after(addonsv1.StackDegraded, 2, 0).asks("b"), false},
		"one may fail":                                         {after(hasFailed, 2, 1).asks("b"), true},
		"a failed one gets the correction though no other may": {after(hasFailed, 1, 0).asks("b", "a"), true},
		"while it gets that, it still counts as failed":        {after(hasFailed, 2, 0).asks("a", "b"), false},
		"a failed one waits for a place, too":                  {after(hasFailed, 1, 1).asks("b", "a"), false},
		"one that was corrected holds nobody":                  {after(hasFailed, 1, 0).is("a", isReady).asks("b"), true},
		"one that had failed before doesn't count":             {wasIll.is("a", hasFailed).asks("b"), true},
		"one that is paused holds nobody":                      {after(isStopped, 1, 0).asks("b"), true},
		"one that falls silent keeps its place":                {after(onTheWay, 1, 0).asks("b"), false},
		"a person lets one pass":                               {after(hasFailed, 1, 0).Ask("b", isReady, noon, true), true},
		"one that takes too long has failed":                   {after(onTheWay, 1, 0).later().asks("b"), false},
		"one that takes too long gives its place free":         {after(onTheWay, 1, 1).later().asks("b"), true},
		"one that took too long, and is ready, holds nobody":   {after(onTheWay, 1, 0).later().is("a", isReady).asks("b"), true},
		"after a restart, one is on its way":                   {restarted(onTheWay, noon).asks("b"), false},
		"after a restart, one has failed":                      {restarted(hasFailed, noon).asks("b"), false},
		"after a restart, none has begun":                      {restarted(hasFailed, time.Time{}).asks("b"), true},
		"what failed before a restart may be corrected":        {restarted(hasFailed, noon).asks("a"), true},
		"what ended in this process has ended": {func() bool {
			s := restarted(onTheWay, noon).is("a", isReady)
			s.Know("a", addonsv1.StackStatus{State: onTheWay, InputsChanged: metav1.NewTime(noon)}) // the cache is behind
			return s.asks("b")
		}(), true},
		"maxFailed is raised": {after(hasFailed, 1, 0).with(1, 1).asks("b"), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
}

// Those that wait are looked at when there may be a place for them, or something to tell them, and only then. The status
// has since when a cluster is on its way, or was before it failed.
func TestInputTurnsTell(t *testing.T) {
	for name, tc := range map[string]struct {
		settled addonsv1.StackState
		before  func(s *story)
		began   bool
		want    []string
	}{
		"nothing has changed":   {onTheWay, func(*story) {}, true, nil},
		"one is ready":          {isReady, func(*story) {}, false, []string{"b"}},
		"one of two is ready":   {isReady, func(s *story) { s.with(2, 0) }, false, []string{"b", "c"}},
		"one waits no more":     {isReady, func(s *story) { s.is("b", isReady) }, false, []string{"c"}},
		"one is gone":           {isReady, func(s *story) { s.Forget("b") }, false, []string{"c"}},
		"one has failed":        {hasFailed, func(*story) {}, true, []string{"b", "c"}},
		"it has been told":      {hasFailed, func(s *story) { s.is("a", hasFailed) }, true, nil},
		"a failed one is ready": {isReady, func(s *story) { s.is("a", hasFailed) }, false, []string{"b", "c"}},
	} {
		s := newStory(1, 0)
		s.asks("a", "c", "b")
		tc.before(s)
		began, look := s.Settle("a", tc.settled)
		if !slices.Equal(look, tc.want) || began.IsZero() == tc.began {
			t.Errorf("%s: %v, want %v; began %s", name, look, tc.want, began)
		}
	}
	s := newStory(1, 0)
	s.asks("a", "b", "c")
	if _, look := s.Settle("b", isReady); !slices.Equal(look, []string{"c"}) {
		t.Errorf("%v are looked at once one needs its place no more", look)
	}
	s = after(hasFailed, 1, 0)
	s.later().asks("a")
	if since, _ := s.Settle("a", hasFailed); !since.Equal(noon) {
		t.Errorf("it failed again: since %s, want the first try", since)
	}
	s = after(hasFailed, 1, 1)
	if s.asks("b", "c", "a"); !slices.Equal(s.Waiting(), []string{"a", "c"}) {
		t.Errorf("%v wait: the one that failed is first", s.Waiting())
	}
	if look := s.Forget("b"); !slices.Equal(look, []string{"a", "c"}) {
		t.Errorf("%v are looked at once one is gone", look)
	}
}

// fleetOf is a model of clusters that get other inputs, and are looked at only when an event says so.
type fleetOf struct {
	t      *testing.T
	random *rand.Rand
	*story
	// wants and has are numbers of inputs. bad are inputs that fail.
	wants, has []int
	bad        map[int]bool
	// state of each cluster, by what the last look showed.
	failed, onWay, away []bool
	began               []time.Time
	events              []int
}

func (f *fleetOf) name(i int) string { return fmt.Sprintf("c%02d", i) }

// look is one reconcile of a cluster.
func (f *fleetOf) look(i int) {
	outcome := isReady
	switch {
	case f.away[i] && f.failed[i]:
		if outcome = hasFailed; f.onWay[i] {
			f.onWay[i], f.has[i] = false, -1 // it comes back as one that has to begin
		}
	case f.away[i]:
		if outcome = isStopped; f.onWay[i] {
			f.onWay[i], f.has[i] = false, -1
		}
	case f.has[i] != f.wants[i]:
		running, failures := f.counts()
		isForced := f.random.IntN(200) == 0
		wasFailed := f.failed[i] || f.isLate(i)
		if f.Ask(f.name(i), isReady, f.now, isForced) {
			if !f.onWay[i] || f.isLate(i) {
				if !isForced && running >= f.Concurrent {
					f.t.Fatalf("%s begins beside %d others", f.name(i), running)
				}
				if !isForced && !wasFailed && failures > f.MaxFailed {
					f.t.Fatalf("%s begins after %d failures", f.name(i), failures)
				}
				f.began[i], f.failed[i] = f.now, wasFailed
			}
			f.has[i], f.onWay[i] = f.wants[i], true
			outcome = onTheWay
		} else if f.failed[i] {
			outcome = hasFailed
		} else if f.onWay[i] {
			outcome = onTheWay
		}
	case f.onWay[i]:
		outcome = onTheWay
		if f.random.IntN(2) == 0 {
			if f.onWay[i], f.failed[i] = false, f.bad[f.has[i]]; f.failed[i] {
				outcome = hasFailed
			} else {
				outcome = isReady
			}
		} else {
			f.events = append(f.events, i) // its objects change until it is ready or has failed
		}
	case f.failed[i]:
		outcome = hasFailed
	}
	_, look := f.Settle(f.name(i), outcome)
	for _, name := range look {
		f.events = append(f.events, int(name[1]-'0')*10+int(name[2]-'0'))
	}
	if f.onWay[i] && !slices.Contains(f.events, i) {
		f.events = append(f.events, i)
	}
}

func (f *fleetOf) isLate(i int) bool { return f.onWay[i] && !f.now.Before(f.began[i].Add(f.Within)) }

// counts returns how many clusters are on their way, and how many failed.
func (f *fleetOf) counts() (running, failed int) {
	for i := range f.onWay {
		switch {
		case f.onWay[i] && !f.isLate(i):
			running++
			if f.failed[i] {
				failed++
			}
		case f.onWay[i], f.failed[i]:
			failed++
		}
	}
	return running, failed
}

// Never more clusters than the limit are on their way, and none begins after too many failures. Once the inputs are good,
// each one begins in the end, though a cluster is looked at only after an event.
func TestInputTurnsAreSafeAndEnd(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 39))
		n := 1 + random.IntN(8)
		f := &fleetOf{
			t: t, random: random, story: newStory(1+random.IntN(3), random.IntN(3)), bad: map[int]bool{},
			wants: make([]int, n), has: make([]int, n), failed: make([]bool, n), onWay: make([]bool, n), away: make([]bool, n), began: make([]time.Time, n),
		}
		for i := range n {
			f.know(f.name(i))
		}
		change := func(i, input int) { f.wants[i] = input; f.events = append(f.events, i) }
		for step := 1; step < 60; step++ {
			switch i := random.IntN(n); random.IntN(8) {
			case 0:
				for i := range n {
					change(i, step)
				}
				f.bad[step] = random.IntN(2) == 0
			case 1:
				change(i, step)
				f.bad[step] = random.IntN(2) == 0
			case 2:
				f.away[i] = !f.away[i]
				f.events = append(f.events, i)
			case 3:
				f.now = f.now.Add(time.Duration(random.IntN(40)) * time.Minute)
			default:
				f.drain(random.IntN(6))
			}
		}
		for i := range n { // a person corrects all, and all clusters are there
			f.away[i] = false
			change(i, 1000)
		}
		f.drain(10_000)
		for i := range n {
			if f.has[i] != 1000 || f.failed[i] || f.onWay[i] {
				t.Fatalf("seed %d: %s has %d of 1000: failed %v, on its way %v", seed, f.name(i), f.has[i], f.failed[i], f.onWay[i])
			}
		}
		if len(f.Waiting())+len(f.Failed(f.now)) > 0 {
			t.Fatalf("seed %d: %v wait, %v failed", seed, f.Waiting(), f.Failed(f.now))
		}
	}
}

// drain has the clusters looked at of which there are events, in any order.
func (f *fleetOf) drain(most int) {
	for range most {
		if len(f.events) == 0 {
			return
		}
		at := f.random.IntN(len(f.events))
		i := f.events[at]
		f.events = slices.Delete(f.events, at, at+1)
		f.look(i)
	}
}
