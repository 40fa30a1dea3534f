// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// flights are the clusters on their way to a revision other than the one before, by the events of a watch. Their way is from
// the write of the assignment until they are ready.
type flights struct {
	before string

	mu       sync.Mutex
	underWay sets.Set[string]
	started  sets.Set[string]
	most     int
	begun    chan string // each cluster that starts
}

func newFlights(before string, clusters int) *flights {
	return &flights{before: before, underWay: sets.New[string](), started: sets.New[string](), begun: make(chan string, 4*clusters)}
}

func (f *flights) see(event watch.Event) {
	ca, ok := event.Object.(*addonsv1.ClusterAddon)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	revision := stack.AssignedRevision(ca.Spec.Stacks, "platform")
	isReady := len(ca.Status.Stacks) == 1 && ca.Status.Stacks[0].Revision == revision && ca.Status.Stacks[0].State == addonsv1.StackReady
	if event.Type == watch.Deleted || revision == f.before || revision == "" || isReady {
		f.underWay.Delete(ca.Name)
		return
	}
	f.underWay.Insert(ca.Name)
	f.most = max(f.most, f.underWay.Len())
	if !f.started.Has(ca.Name) {
		f.started.Insert(ca.Name)
		f.begun <- ca.Name
	}
}

// assignments counts the writes of assignments since a mark, by cluster.
func (r *rolling) assignments(since mark) map[string]int {
	r.t.Helper()
	writes := map[string]int{}
	for _, e := range since.requests(r.t, r.user) {
		if audit.Write(&e) && e.ObjectRef != nil && e.ObjectRef.Resource == "clusteraddons" && e.ObjectRef.Subresource == "" && e.ResponseStatus.Code < 300 {
			writes[e.ObjectRef.Name]++
		}
	}
	return writes
}

// generations returns the generation of each ClusterAddon: a write of an assignment makes another one.
func (r *rolling) generations() map[string]int64 {
	r.t.Helper()
	all := &addonsv1.ClusterAddonList{}
	must.Succeed(r.t, world.hub.List(r.t.Context(), all, client.InNamespace(r.namespace)))
	generations := map[string]int64{}
	for i := range all.Items {
		generations[all.Items[i].Name] = all.Items[i].Generation
	}
	return generations
}

// TestRolloutThroughKills brings an edit to a fleet in five waves, and kills the manager again and again. Never are more
// clusters on their way than may, each assignment is written once, and nothing happens at rest.
func TestRolloutThroughKills(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	clusters, kills := environmentNumber(t, "CHANDLER_ROLLOUT_CLUSTERS", 12), environmentNumber(t, "CHANDLER_ROLLOUT_KILLS", 4)
	most := max(2, clusters/20)
	r := newRolling(t, "kill", clusters)
	f := newFlights(r.latestRevision("platform"), clusters)
	stop := r.watchAll(world.hub, &addonsv1.ClusterAddonList{}, f.see)
	generations := r.generations()
	since, began := world.hub.mark(t), time.Now()
	wave := func(name, size string) addonsv1.RolloutWave {
		return addonsv1.RolloutWave{Name: name, Size: ptr.To(intstr.FromString(size))}
	}
	r.edit("two", "none", rollsOut(addonsv1.Rollout{
		MaxConcurrent: ofNumber(int32(most)), Soak: &metav1.Duration{Duration: time.Second},
		Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1)}, wave("few", "10%"), wave("some", "30%"), wave("many", "50%")},
	}))
	killed := 0
	for i := range clusters {
		select {
		case <-f.begun:
		case <-time.After(10 * patience):
			t.Fatalf("%d clusters started, and then no other", i)
		}
		for killed*clusters < (i+1)*kills { // right after a write
			r.restart()
			killed++
		}
	}
	r.awaitPhase(addonsv1.RolloutCompleted, int32(clusters), "it comes to all")
	lasted := time.Since(began)
	stop()
	r.Expect(f.most).To(BeNumerically("<=", most), "never more than maxConcurrent are on their way")
	r.Expect(f.underWay).To(BeEmpty())
	written := r.assignments(since) // without those whose answer a killed manager didn't wait for
	for name, generation := range r.generations() {
		r.Expect(generation).To(Equal(generations[name]+1), "%s is assigned once", name)
		r.Expect(written[name]).To(BeNumerically("<=", 1), name)
	}
	r.settle()
	rest := world.hub.mark(t)
	r.settle()
	r.Expect(writes(rest.requests(t, r.user))).To(BeEmpty())
	t.Logf("%d clusters, 5 waves, %d kills: at most %d of %d on their way, %d assignments of which %d were heard of, in %s",
		clusters, killed, f.most, most, f.started.Len(), len(written), lasted.Round(time.Millisecond))
}

// TestRolloutOfAllAtOnce prints how much longer an edit takes with a rollout of all clusters at once than without a
// rollout, and how many requests the management cluster gets for it. Both are measured several times, in turns, and the
// least counts: what else runs on the machine only adds to it.
func TestRolloutOfAllAtOnce(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	clusters, rounds := environmentNumber(t, "CHANDLER_ROLLOUT_CLUSTERS", 12), environmentNumber(t, "CHANDLER_ROLLOUT_ROUNDS", 3)
	r := newRolling(t, "once", clusters)
	shortest, fewest := map[bool]time.Duration{}, map[bool]int{}
	for round := range 2 * rounds {
		isRollout := round%2 == 1
		lasted, requests := r.takesAll(fmt.Sprint("text ", round), clusters, isRollout)
		if is, has := shortest[isRollout]; !has || lasted < is {
			shortest[isRollout] = lasted
		}
		if is, has := fewest[isRollout]; !has || len(requests) < is {
			fewest[isRollout] = len(requests)
		}
		t.Logf("round %d, with a rollout: %t: %s, %s", round, isRollout, lasted.Round(time.Millisecond), counted(requests))
	}
	t.Logf("%d clusters: %s with a rollout of all at once, %s without: %.2f times as long; %d and %d requests", clusters,
		shortest[true].Round(time.Millisecond), shortest[false].Round(time.Millisecond), shortest[true].Seconds()/shortest[false].Seconds(),
		fewest[true], fewest[false])
}

// takesAll brings an edit to all clusters, and returns how long it took, and the requests to the management cluster.
func (r *rolling) takesAll(text string, clusters int, isRollout bool) (time.Duration, []auditEvent) {
	r.t.Helper()
	r.settle()
	since, began := world.hub.mark(r.t), time.Now()
	r.edit(text, "none", func(spec *addonsv1.AddonStackSpec) {
		if spec.Rollout = nil; isRollout {
			spec.Rollout = &addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromString("100%"))}
		}
	})
	await(r.t, world.hub, r.newStack("platform", nil), 20*patience, "all have it", func(s *addonsv1.AddonStack) error {
		counts := ptr.Deref(s.Status.Clusters, addonsv1.ClusterCounts{})
		if s.Status.ObservedGeneration != s.Generation || !conditions.IsTrue(s, addonsv1.ReadyCondition) || int(counts.Ready) != clusters ||
			isRollout && !conditions.IsTrue(s, addonsv1.RolledOutCondition) {
			return fmt.Errorf("%+v", counts)
		}
		return nil
	})
	lasted := time.Since(began)
	r.settle()
	return lasted, since.requests(r.t, r.user)
}

// counted returns how many requests are of each kind.
func counted(requests []auditEvent) string {
	counts := map[string]int{}
	for _, e := range requests {
		if e.ObjectRef != nil && e.Verb != "watch" {
			counts[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
		}
	}
	return fmt.Sprint(counts)
}
