// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// shared is a rollout of several instances: each decides on its own clusters, by a revision as it has seen it last, and writes over
// that one alone.
type shared struct {
	spec      addonsv1.Rollout
	revision  appsv1.ControllerRevision // ResourceVersion is the number of writes
	writes    int
	instances []*instance
	now       time.Time
	touched   int
}

type instance struct {
	filter   string
	clusters []rollout.Cluster
	seen     appsv1.ControllerRevision
	done     int32
	phase    addonsv1.RolloutPhase
	stopped  bool
}

func share(spec addonsv1.Rollout, instances, clusters int) *shared {
	s := &shared{spec: spec, now: now, revision: appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Revision: 2}}
	rollout.Begin(&s.revision, rollout.Edited, false)
	for i := range instances {
		is := &instance{filter: fmt.Sprint("instance-", i), seen: *s.revision.DeepCopy()}
		is.clusters = clustersBefore(fmt.Sprint("c-", i), clusters)
		s.instances = append(s.instances, is)
	}
	return s
}

// decide has an instance decide once. What it saw may be old.
func (s *shared) decide(t *testing.T, is *instance, state func(c *rollout.Cluster, age time.Duration) addonsv1.StackState) {
	t.Helper()
	strategy, errs := rollout.StrategyOf(&s.spec, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	in := rollout.Input{Now: s.now, Strategy: strategy, Clusters: is.clusters}
	for _, other := range s.instances {
		if other != is {
			in.Others = append(in.Others, addonsv1.StackInstance{
				WatchFilter: other.filter, Clusters: &addonsv1.ClusterCounts{Total: int32(len(other.clusters))},
				Rollout: &addonsv1.RolloutProgress{Revision: "new", WavesDone: other.done},
			})
		}
	}
	in.Aim([]appsv1.ControllerRevision{is.seen}, 0, is.filter)
	d := rollout.Decide(in)
	marked := is.seen.DeepCopy()
	if rollout.Mark(marked, d, rollout.WavesOf(&s.spec), is.filter, s.now); !maps.Equal(marked.Annotations, is.seen.Annotations) {
		if is.seen.ResourceVersion != s.revision.ResourceVersion {
			return // a conflict
		}
		s.writes++
		marked.ResourceVersion = fmt.Sprint(s.writes)
		s.revision, is.seen = *marked, *marked.DeepCopy()
	}
	is.phase, is.done = d.Phase, int32(len(d.Over))
	s.touched += len(d.Start)
	bring(is.clusters, sets.New(d.Start...), s.now, state)
}

// onTheWay counts the clusters that have started, and neither were ready for long enough nor failed.
func (s *shared) onTheWay() (n, done int) {
	for _, is := range s.instances {
		for _, c := range is.clusters {
			switch {
			case c.Assigned != "new", c.State == degraded:
			case c.State == ready && s.now.Sub(c.Since) >= addonsv1.DefaultMinReady:
				done++
			default:
				n++
			}
		}
	}
	return n, done
}

// until has instances decide in any order, until all completed, or a time is over.
func (s *shared) until(t *testing.T, random *rand.Rand, limit time.Duration, state func(c *rollout.Cluster, age time.Duration) addonsv1.StackState, check func()) {
	t.Helper()
	for end := s.now.Add(limit); s.now.Before(end); s.now = s.now.Add(20 * time.Second) {
		completed := 0
		for _, i := range random.Perm(len(s.instances)) {
			is := s.instances[i]
			if random.IntN(3) == 0 {
				is.seen = *s.revision.DeepCopy()
			}
			if !is.stopped {
				s.decide(t, is, state)
			}
			if check(); is.phase == addonsv1.RolloutCompleted {
				completed++
			}
		}
		if completed == len(s.instances) {
			return
		}
	}
}

// Ten instances have no more clusters on their way than the stack allows, and one canary. All clusters arrive.
func TestLimitsCountOverInstances(t *testing.T) {
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 46))
		s := share(addonsv1.Rollout{MaxConcurrent: new(intstr.FromInt32(5))}, 10, 12)
		most := 0
		s.until(t, random, 24*time.Hour, crashes(24*time.Hour), func() {
			n, done := s.onTheWay()
			if most = max(most, n); n > 5 || done == 0 && s.touched > 1 {
				t.Fatalf("seed %d: %d clusters are on their way, %d done", seed, n, done)
			}
		})
		if s.touched != 120 || most < 5 {
			t.Errorf("seed %d: %d of 120 clusters got it, %d at once", seed, s.touched, most)
		}
	}
}

// Clusters that fail at one instance halt the others. Percentages are of all clusters.
func TestFailuresCountOverInstances(t *testing.T) {
	spec := addonsv1.Rollout{
		Waves:         []addonsv1.RolloutWave{{Name: "canary", Size: new(intstr.FromString("5%"))}},
		MaxConcurrent: new(intstr.FromInt32(5)), MaxFailed: new(intstr.FromString("2%")),
	}
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 47))
		s := share(spec, 5, 20)
		failed := 0
		s.until(t, random, time.Hour, crashes(time.Minute), func() {
			failed = 0
			for _, is := range s.instances {
				for _, c := range is.clusters {
					if c.Assigned == "new" && c.State == degraded {
						failed++
					}
				}
			}
		})
		if s.touched == 0 || s.touched > 5 || failed != s.touched {
			t.Errorf("seed %d: %d clusters got it, and %d failed, want at most the 5 of the canary", seed, s.touched, failed)
		}
		for _, is := range s.instances {
			if is.phase != addonsv1.RolloutHalted {
				t.Errorf("seed %d: %s is %s", seed, is.filter, is.phase)
			}
		}
	}
}

// An instance that stops in the middle holds its places until its clusters have arrived or failed at the latest. The others finish
// the wave that they are in.
func TestInstanceThatStops(t *testing.T) {
	s := share(addonsv1.Rollout{MaxConcurrent: new(intstr.FromInt32(3))}, 3, 10)
	random := rand.New(rand.NewPCG(1, 48))
	s.until(t, random, 4*time.Hour, crashes(24*time.Hour), func() {
		if is := s.instances[0]; s.touched > 6 && !is.stopped {
			for _, c := range is.clusters {
				is.stopped = is.stopped || c.State == progressing
			}
		}
	})
	for _, is := range s.instances[1:] {
		got := 0
		for _, c := range is.clusters {
			if c.Assigned == "new" {
				got++
			}
		}
		if got != 10 || is.phase != addonsv1.RolloutWaitingForInstances {
			t.Errorf("%s is %s, %d of 10 clusters got it", is.filter, is.phase, got)
		}
	}
}
