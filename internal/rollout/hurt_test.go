// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// simulation brings 200 clusters to a revision by the product's decisions, and notes these as the controller does.
type simulation struct {
	spec     addonsv1.Rollout
	revision appsv1.ControllerRevision
	clusters []rollout.Cluster
	now      time.Time
	touched  int
	phase    addonsv1.RolloutPhase
	rejected bool
}

func simulate(t *testing.T, spec addonsv1.Rollout) *simulation {
	t.Helper()
	s := &simulation{spec: spec, now: now, revision: appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Revision: 2}}
	rollout.Begin(&s.revision, rollout.Edited, false)
	s.clusters = clustersBefore("c", 200)
	return s
}

// clustersBefore returns clusters that have been ready at the revision before for an hour.
func clustersBefore(prefix string, n int) (clusters []rollout.Cluster) {
	for i := range n {
		clusters = append(clusters, rollout.Cluster{
			Name: fmt.Sprintf("%s-%03d", prefix, i), Labels: labels.Set{}, Joined: now.Add(-time.Hour), Assigned: "old", GoesBackTo: "old",
			State: ready, Since: now.Add(-time.Hour), Started: now.Add(-time.Hour), WasReady: true,
		})
	}
	return clusters
}

// bring has clusters start, and sets those that have the new revision to the state that is returned for their age.
func bring(clusters []rollout.Cluster, start sets.Set[string], now time.Time, state func(c *rollout.Cluster, age time.Duration) addonsv1.StackState) {
	for i := range clusters {
		c := &clusters[i]
		if start.Has(c.Name) {
			c.Assigned, c.State, c.Since, c.Started = "new", progressing, now, now
		} else if c.Assigned == "new" {
			if is := state(c, now.Sub(c.Started)); is != c.State {
				c.State, c.Since = is, now
			}
		}
	}
}

// until decides each few seconds, until the rollout ends or a time is over. A cluster that has the revision is in the state
// that is returned for its age.
func (s *simulation) until(t *testing.T, limit, step time.Duration, state func(c *rollout.Cluster, age time.Duration) addonsv1.StackState) {
	t.Helper()
	for end := s.now.Add(limit); s.now.Before(end); s.now = s.now.Add(step) {
		strategy, errs := rollout.StrategyOf(&s.spec, nil)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		in := rollout.Input{Now: s.now, Strategy: strategy, Clusters: s.clusters}
		in.Aim([]appsv1.ControllerRevision{s.revision}, 0, "")
		d := rollout.Decide(in)
		rollout.Mark(&s.revision, d, rollout.WavesOf(&s.spec), "", s.now)
		s.phase, s.rejected = d.Phase, s.rejected || d.Reject
		if d.Reject || d.Completed || d.Phase == addonsv1.RolloutHalted {
			return
		}
		s.touched += len(d.Start)
		bring(s.clusters, sets.New(d.Start...), s.now, state)
	}
}

// crashes returns the states of a cluster that is ready after a minute, crashes some time after that, and is found Degraded a
// minute later.
func crashes(after time.Duration) func(*rollout.Cluster, time.Duration) addonsv1.StackState {
	return func(_ *rollout.Cluster, age time.Duration) addonsv1.StackState {
		switch {
		case age >= 2*time.Minute+after:
			return degraded
		case age >= time.Minute:
			return ready
		}
		return progressing
	}
}

// A revision that breaks clusters some time after they were Ready reaches few of them.
func TestCrashAfterReady(t *testing.T) {
	one := []addonsv1.RolloutWave{{Name: "canary", Size: new(intstr.FromInt32(1))}}
	soak := &metav1.Duration{Duration: 10 * time.Minute}
	for name, tc := range map[string]struct {
		spec addonsv1.Rollout
		most map[time.Duration]int // by the time of the crash
	}{
		"{}":                        {addonsv1.Rollout{}, map[time.Duration]int{30 * time.Second: 1, 2 * time.Minute: 1, 5 * time.Minute: 21}},
		"{soak: 10m}":               {addonsv1.Rollout{Soak: soak}, map[time.Duration]int{30 * time.Second: 1, 2 * time.Minute: 1, 5 * time.Minute: 1}},
		"a canary":                  {addonsv1.Rollout{Waves: one}, map[time.Duration]int{30 * time.Second: 1, 2 * time.Minute: 1, 5 * time.Minute: 21}},
		"a canary, and {soak: 10m}": {addonsv1.Rollout{Waves: one, Soak: soak}, map[time.Duration]int{30 * time.Second: 1, 2 * time.Minute: 1, 5 * time.Minute: 1}},
	} {
		for _, after := range []time.Duration{30 * time.Second, 2 * time.Minute, 5 * time.Minute, 20 * time.Minute} {
			s := simulate(t, tc.spec)
			s.until(t, 12*time.Hour, 5*time.Second, crashes(after))
			t.Logf("%-26s crash %5s after Ready: %3d of 200 got it, %s", name, after, s.touched, s.phase)
			if most, known := tc.most[after]; known && (s.touched > most || s.phase != addonsv1.RolloutHalted) {
				t.Errorf("%s, crash %s after Ready: %d clusters got it, want at most %d; %s", name, after, s.touched, most, s.phase)
			}
		}
	}
}

// While the last soak lasts, a crash is still rolled back.
func TestCrashInTheLastSoak(t *testing.T) {
	for _, waves := range [][]addonsv1.RolloutWave{nil, {{Name: "canary", Size: new(intstr.FromInt32(1)), Soak: new(metav1.Duration{})}}} {
		s := simulate(t, addonsv1.Rollout{Waves: waves, Soak: &metav1.Duration{Duration: time.Hour}, MaxConcurrent: new(intstr.FromString("100%")), OnFailure: addonsv1.RolloutRollBack})
		last := time.Time{}
		s.until(t, 12*time.Hour, 5*time.Second, func(c *rollout.Cluster, age time.Duration) addonsv1.StackState {
			if s.touched == 200 && last.IsZero() {
				last = s.now
			}
			if !last.IsZero() && s.now.Sub(last) >= 21*time.Minute {
				return degraded
			}
			return crashes(24*time.Hour)(c, age)
		})
		if !s.rejected {
			t.Errorf("%d clusters have it, %s", s.touched, s.phase)
		}
	}
}

// An add-on that takes two seconds, and is bad on one cluster in twenty, stops at once.
func TestFastFailures(t *testing.T) {
	for name, spec := range map[string]addonsv1.Rollout{
		"{}":                 {},
		"a canary of two":    {Waves: []addonsv1.RolloutWave{{Name: "canary", Size: new(intstr.FromInt32(2))}}},
		"{maxConcurrent: 2}": {MaxConcurrent: new(intstr.FromInt32(2))},
		"{minReady: 0s}":     {MinReady: &metav1.Duration{}},
	} {
		s := simulate(t, spec)
		bad, hurt := sets.New[string](), sets.New[string]()
		for i := 7; i < 200; i += 18 {
			bad.Insert(fmt.Sprintf("c-%03d", i))
		}
		s.until(t, 24*time.Hour, time.Second, func(c *rollout.Cluster, age time.Duration) addonsv1.StackState {
			switch {
			case age < 2*time.Second:
				return progressing
			case bad.Has(c.Name):
				hurt.Insert(c.Name)
				return isFailed
			}
			return ready
		})
		t.Logf("%-20s bad on %d of 200: %3d got it, %d are hurt, %s", name, len(bad), s.touched, len(hurt), s.phase)
		if len(hurt) > 2 || s.phase != addonsv1.RolloutHalted {
			t.Errorf("%s: %d are hurt, %s", name, len(hurt), s.phase)
		}
	}
}

// A canary that crashes and runs in turn is never done: the rollout halts, and nobody else gets the revision.
func TestFlappingCanary(t *testing.T) {
	s := simulate(t, addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: new(intstr.FromInt32(1)), Soak: &metav1.Duration{Duration: 45 * time.Second}}}})
	flaps := func(_ *rollout.Cluster, age time.Duration) addonsv1.StackState {
		switch {
		case age < time.Minute:
			return progressing
		case age%(90*time.Second) < time.Minute:
			return ready
		}
		return degraded
	}
	for range 50 { // each time that it is halted, it goes on being so
		s.until(t, time.Hour, 5*time.Second, flaps)
		s.now = s.now.Add(time.Minute)
	}
	if s.touched != 1 || s.phase != addonsv1.RolloutHalted {
		t.Errorf("%d clusters got it, %s", s.touched, s.phase)
	}
}

// A fleet that grows comes to the end of a rollout, and what was proven stays so: those that join follow.
func TestGrowingFleet(t *testing.T) {
	tenth := intstr.FromString("10%")
	s := simulate(t, addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: &tenth, Soak: &metav1.Duration{Duration: 24 * time.Hour}}}, Soak: &metav1.Duration{}})
	good := crashes(10000 * time.Hour)
	s.until(t, 25*time.Hour, time.Minute, good)
	if s.touched <= 20 {
		t.Fatalf("after the soak %d have it", s.touched)
	}
	hours := 0
	for ; hours < 10*24 && s.phase != addonsv1.RolloutCompleted; hours++ {
		if hours%20 == 0 {
			for i := range 10 {
				s.clusters = append(s.clusters, rollout.Cluster{Name: fmt.Sprint("new-", hours, "-", i), Joined: s.now, Assigned: "old", State: ready, WasReady: true, Started: s.now, Since: s.now})
			}
		}
		s.until(t, time.Hour, time.Minute, good)
	}
	if s.phase != addonsv1.RolloutCompleted || hours > 24 {
		t.Errorf("after %d hours: %s, %d of %d have it", hours, s.phase, s.touched, len(s.clusters))
	}
	if over := rollout.AttemptOf(&s.revision).Instances[""].Over; len(over) != 2 {
		t.Errorf("waves that are over: %v", over)
	}
}

// A canary that is deleted while it soaks restarts no soak, and no other cluster takes its place.
func TestDeletedCanary(t *testing.T) {
	s := simulate(t, addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: new(intstr.FromInt32(2)), Soak: &metav1.Duration{Duration: 24 * time.Hour}}}})
	good := crashes(10000 * time.Hour)
	s.until(t, 12*time.Hour, time.Minute, good)
	for i := range s.clusters {
		if s.clusters[i].Assigned == "new" {
			s.clusters = append(s.clusters[:i], s.clusters[i+1:]...)
			break
		}
	}
	if s.until(t, 11*time.Hour, time.Minute, good); s.touched != 2 || s.phase != addonsv1.RolloutSoaking {
		t.Errorf("in the soak: %d clusters got it, %s", s.touched, s.phase)
	}
	if s.until(t, 90*time.Minute, time.Minute, good); s.touched <= 2 {
		t.Errorf("after the soak that began with the first one: %d clusters got it, %s", s.touched, s.phase)
	}
}

// If what clusters had can't be applied any more, few of them are brought back to it.
func TestBackFails(t *testing.T) {
	s := simulate(t, addonsv1.Rollout{MaxConcurrent: new(intstr.FromInt32(5)), OnFailure: addonsv1.RolloutRollBack})
	for i := range s.clusters { // all but the canary have the first edit, which was never completed
		s.clusters[i].Assigned, s.clusters[i].GoesBackTo = "first edit", "first edit"
	}
	for i := range 20 {
		s.clusters[i].Assigned, s.clusters[i].State = "new", isFailed
	}
	s.revision.Annotations[addonsv1.RolloutRejectedAnnotation] = "broken"
	back := map[string]bool{}
	for end := s.now.Add(3 * time.Hour); s.now.Before(end); s.now = s.now.Add(5 * time.Second) {
		strategy, _ := rollout.StrategyOf(&s.spec, nil)
		in := rollout.Input{Now: s.now, Strategy: strategy, Clusters: s.clusters}
		if in.Aim([]appsv1.ControllerRevision{s.revision}, 0, ""); in.Returned.IsZero() {
			in.Returned = s.now
		}
		d := rollout.Decide(in)
		rollout.Mark(&s.revision, d, nil, "", s.now)
		s.phase = d.Phase
		start := sets.New(d.Start...)
		for i := range s.clusters {
			c := &s.clusters[i]
			switch {
			case start.Has(c.Name):
				back[c.Name] = true
				c.Assigned, c.State, c.Since, c.Started = "first edit", progressing, s.now, s.now
			case back[c.Name] && c.State == progressing && s.now.Sub(c.Started) > time.Minute:
				c.State, c.Since = isFailed, s.now
			}
		}
	}
	if len(back) > 5 || s.phase != addonsv1.RolloutHalted {
		t.Errorf("%d clusters were brought back, %s", len(back), s.phase)
	}
}
