// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// story is what happens to clusters of a stack that get other inputs. Each step is a cluster and what a look at it shows:
// "a asks" for its turn, "a waits" as it asked and didn't get it.
type story struct {
	*decide.InputTurns
	now time.Time
}

// newStory begins with turns of which so many may be on their way, and so many may fail.
func newStory(concurrent, maxFailed int) *story {
	return &story{InputTurns: &decide.InputTurns{Concurrent: concurrent, MaxFailed: maxFailed, Within: time.Hour}, now: noon}
}

// asks has clusters ask, and reports whether the last one may begin. One that may not is as it was.
func (s *story) asks(clusters ...string) (may bool) {
	for _, name := range clusters {
		failed := slices.Contains(s.Failed(s.now), name)
		if may = s.Ask(name, s.now, false); may {
			s.Settle(name, decide.InputsGoOn)
		} else if failed {
			s.Settle(name, decide.InputsFailed)
		} else {
			s.Settle(name, decide.InputsEnded)
		}
	}
	return may
}

// comes has a look at a cluster, which doesn't ask, show what came of it.
func (s *story) comes(name string, outcome decide.InputOutcome) *story {
	s.Settle(name, outcome)
	return s
}

// Each rule of docs/reference/values.md about inputs outside of revisions is a row.
func TestInputTurns(t *testing.T) {
	const ended, failed, stopped, goesOn = decide.InputsEnded, decide.InputsFailed, decide.InputsStopped, decide.InputsGoOn
	for name, tc := range map[string]struct{ got, want bool }{
		"one alone begins at once":                             {newStory(1, 0).asks("a"), true},
		"a second one waits":                                   {newStory(1, 0).asks("a", "b"), false},
		"two may begin":                                        {newStory(2, 0).asks("a", "b"), true},
		"one that is on its way goes on":                       {newStory(1, 0).asks("a", "b", "a"), true},
		"none begins after one too many failed":                {afterOne(failed, 2, 0).asks("b"), false},
		"one may fail":                                         {afterOne(failed, 2, 1).asks("b"), true},
		"a failed one gets the correction though no other may": {afterOne(failed, 1, 0).asks("b", "a"), true},
		"while it gets that, it still counts as failed":        {afterOne(failed, 2, 0).asks("a", "b"), false},
		"a failed one waits for a place, too":                  {afterOne(failed, 1, 1).asks("b", "a"), false},
		"one that was corrected holds nobody":                  {afterOne(failed, 1, 0).comes("a", ended).asks("b"), true},
		"one that is paused holds nobody":                      {afterOne(stopped, 1, 0).asks("b"), true},
		"a failed one that is paused still counts":             {afterOne(failed, 1, 0).comes("a", stopped).asks("b"), false},
		"one that falls silent keeps its place":                {afterOne(goesOn, 1, 0).asks("b"), false},
		"a person lets one pass":                               {afterOne(failed, 1, 0).Ask("b", noon, true), true},
		"one that takes too long has failed":                   {afterOne(goesOn, 1, 0).later().asks("b"), false},
		"one that takes too long gives its place free":         {afterOne(goesOn, 1, 1).later().asks("b"), true},
		"after a restart, one is on its way":                   {restored(false).asks("b"), false},
		"after a restart, one has failed":                      {restored(true).asks("b"), false},
		"what failed before a restart may be corrected":        {restored(true).asks("a"), true},
		"maxFailed is raised":                                  {afterOne(failed, 1, 0).with(1, 1).asks("b"), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
}

// afterOne is the story of one cluster that began, and what came of it.
func afterOne(outcome decide.InputOutcome, concurrent, maxFailed int) *story {
	s := newStory(concurrent, maxFailed)
	s.asks("a")
	return s.comes("a", outcome)
}

func restored(failed bool) *story {
	s := newStory(1, 0)
	s.Restore("a", noon, failed)
	return s
}

func (s *story) later() *story {
	s.now = s.now.Add(time.Hour)
	return s
}

func (s *story) with(concurrent, maxFailed int) *story {
	s.Concurrent, s.MaxFailed = concurrent, maxFailed
	return s
}

// Those that wait are looked at when there is a place for them, or something to tell them, and only then.
func TestNextInputTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(s *story)
		want  []string
	}{
		"nothing has changed":               {func(*story) {}, nil},
		"one is ready":                      {func(s *story) { s.comes("a", decide.InputsEnded) }, []string{"c"}},
		"one is deleted while it waits":     {func(s *story) { s.comes("c", decide.InputsEnded).comes("a", decide.InputsEnded) }, []string{"b"}},
		"one has failed: all are told":      {func(s *story) { s.comes("a", decide.InputsFailed) }, []string{"c", "b"}},
		"they are told once":                {func(s *story) { s.comes("a", decide.InputsFailed).Next(noon); s.comes("a", decide.InputsFailed) }, nil},
		"a turn that isn't taken passes on": {func(s *story) { s.comes("a", decide.InputsEnded).Next(noon); s.comes("c", decide.InputsGoOn) }, []string{"b"}},
		"those that failed come first": {func(s *story) {
			s.with(1, 1).comes("a", decide.InputsFailed).asks("c", "a")
			s.comes("c", decide.InputsEnded)
		}, []string{"a", "b"}},
	} {
		s := newStory(1, 0)
		s.asks("a", "c", "b")
		tc.begin(s)
		if got := s.Next(s.now); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	s := newStory(1, 0)
	if !s.Until(noon).IsZero() {
		t.Error("nobody is on the way")
	}
	if s.asks("a"); !s.Until(noon).Equal(noon.Add(time.Hour)) {
		t.Error("it fails after an hour")
	}
	if s.comes("a", decide.InputsEnded); !s.IsEmpty() {
		t.Error("it is kept for ever")
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
	outcome := decide.InputsEnded
	switch {
	case f.away[i]:
		if outcome = decide.InputsStopped; f.onWay[i] {
			f.onWay[i] = false
			f.has[i] = -1 // it comes back as one that has to begin
		}
	case f.has[i] != f.wants[i]:
		running, failures := f.counts()
		isForced := f.random.IntN(200) == 0
		wasFailed := f.failed[i] || f.isLate(i)
		if f.Ask(f.name(i), f.now, isForced) {
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
			outcome = decide.InputsGoOn
		} else if f.failed[i] {
			outcome = decide.InputsFailed
		} else if f.onWay[i] {
			outcome = decide.InputsGoOn
		}
	case f.onWay[i]:
		outcome = decide.InputsGoOn
		if f.random.IntN(2) == 0 {
			if f.onWay[i], f.failed[i] = false, f.bad[f.has[i]]; f.failed[i] {
				outcome = decide.InputsFailed
			} else {
				outcome = decide.InputsEnded
			}
		} else {
			f.events = append(f.events, i) // its objects change until it is ready or has failed
		}
	case f.failed[i]:
		outcome = decide.InputsFailed
	}
	f.Settle(f.name(i), outcome)
	for _, name := range f.Next(f.now) {
		var other int
		fmt.Sscanf(name, "c%d", &other)
		f.events = append(f.events, other)
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

// Whatever happens, never more clusters than the limit are on their way, none begins after too many failures, and each one
// begins in the end once the inputs are good: nobody looks at a cluster without an event.
func TestInputTurnsAreSafeAndEnd(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 39))
		n := 1 + random.IntN(8)
		f := &fleetOf{
			t: t, random: random, story: newStory(1+random.IntN(3), random.IntN(3)), bad: map[int]bool{},
			wants: make([]int, n), has: make([]int, n), failed: make([]bool, n), onWay: make([]bool, n), away: make([]bool, n), began: make([]time.Time, n),
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
		if !f.IsEmpty() {
			t.Fatalf("seed %d: something is kept for ever", seed)
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
