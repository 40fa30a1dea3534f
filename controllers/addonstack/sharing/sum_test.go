// SPDX-License-Identifier: Apache-2.0

package sharing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
)

// instance is what an instance with the filter says of a stack at a generation: so
// many of its clusters are ready, so many failed.
func instance(filter string, generation int64, total, ready, failed int32) addonsv1.StackInstance {
	view := &addonsv1.AddonStack{}
	view.Generation = generation
	counts := &addonsv1.ClusterCounts{Total: total, Ready: ready, Failed: failed}
	var failures []string
	for i := range failed {
		failures = append(failures, fmt.Sprintf("%s-%d: add-on web: HookFailed", filter, i))
	}
	conditions.Set(view, metav1.Condition{Type: addonsv1.ValidCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ValidReason})
	conditions.Set(view, report.ClustersReady(counts, failures))
	conditions.Set(view, report.Condition(addonsv1.PausedCondition, metav1.ConditionFalse, addonsv1.NotPausedReason, ""))
	return addonsv1.StackInstance{
		WatchFilter: filter, ObservedGeneration: generation, LatestRevision: fmt.Sprintf("platform-%d", generation),
		Clusters: counts, Conditions: view.Status.Conditions,
	}
}

func says(i addonsv1.StackInstance, status metav1.ConditionStatus, reason, message string) addonsv1.StackInstance {
	view := &addonsv1.AddonStack{Status: addonsv1.AddonStackStatus{Conditions: i.Conditions}}
	conditions.Set(view, metav1.Condition{Type: addonsv1.ValidCondition, Status: status, Reason: reason, Message: message})
	i.Conditions = view.Status.Conditions
	return i
}

func TestSum(t *testing.T) {
	for name, tc := range map[string]struct {
		instances []addonsv1.StackInstance
		counts    addonsv1.ClusterCounts
		observed  int64
		revision  string
		ready     metav1.ConditionStatus
		reason    string
		message   string
	}{
		"all is ready": {
			[]addonsv1.StackInstance{instance("blue", 2, 3, 3, 0), instance("green", 2, 2, 2, 0)},
			addonsv1.ClusterCounts{Total: 5, Ready: 5}, 2, "platform-2", metav1.ConditionTrue, addonsv1.ReadyReason, "5 of 5 clusters are ready",
		},
		"one instance is on its way": {
			[]addonsv1.StackInstance{instance("blue", 2, 3, 3, 0), instance("green", 2, 2, 1, 0)},
			addonsv1.ClusterCounts{Total: 5, Ready: 4}, 2, "platform-2", metav1.ConditionFalse, addonsv1.ClustersProgressingReason, "4 of 5 clusters are ready",
		},
		"one instance hasn't seen the new spec: nothing of it is ready at that": {
			[]addonsv1.StackInstance{instance("blue", 2, 3, 3, 0), instance("green", 1, 2, 2, 0)},
			addonsv1.ClusterCounts{Total: 5, Ready: 3}, 1, "platform-2", metav1.ConditionFalse, addonsv1.ClustersProgressingReason,
			"3 of 5 clusters are ready; no instance with --watch-filter=green has seen the newest spec yet",
		},
		"the new spec may select Clusters of an instance that had none": {
			[]addonsv1.StackInstance{instance("blue", 2, 3, 3, 0), instance("green", 1, 0, 0, 0)},
			addonsv1.ClusterCounts{Total: 3, Ready: 3}, 1, "platform-2", metav1.ConditionFalse, addonsv1.ClustersProgressingReason, "--watch-filter=green",
		},
		"failures of each instance": {
			[]addonsv1.StackInstance{instance("blue", 2, 3, 2, 1), instance("green", 2, 2, 0, 2)},
			addonsv1.ClusterCounts{Total: 5, Ready: 2, Failed: 3}, 2, "platform-2", metav1.ConditionFalse, addonsv1.ClustersFailedReason,
			"3 of 5 clusters failed. blue: 1 of 3 clusters failed. blue-0: add-on web: HookFailed; green: 2 of 2 clusters failed. green-0",
		},
		"nobody's Cluster is selected": {
			[]addonsv1.StackInstance{instance("blue", 2, 0, 0, 0)},
			addonsv1.ClusterCounts{}, 2, "platform-2", metav1.ConditionTrue, addonsv1.ReadyReason, "No Cluster of this namespace matches",
		},
		"a spec that all find wrong": {
			[]addonsv1.StackInstance{
				says(instance("blue", 2, 1, 1, 0), metav1.ConditionFalse, addonsv1.InvalidValuesReason, "no map"),
				says(instance("green", 2, 1, 1, 0), metav1.ConditionFalse, addonsv1.InvalidValuesReason, "no map"),
			},
			addonsv1.ClusterCounts{Total: 2, Ready: 2}, 2, "platform-2", metav1.ConditionFalse, addonsv1.InvalidValuesReason, "no map",
		},
		"a spec that one version finds wrong": {
			[]addonsv1.StackInstance{
				instance("blue", 2, 1, 1, 0),
				says(instance("green", 2, 1, 1, 0), metav1.ConditionFalse, addonsv1.InvalidReadinessReason, "unknown function"),
			},
			addonsv1.ClusterCounts{Total: 2, Ready: 2}, 2, "platform-2", metav1.ConditionFalse, addonsv1.InvalidReadinessReason, "Instance green: unknown function",
		},
		"what an instance found wrong with a previous spec is past": {
			[]addonsv1.StackInstance{
				instance("blue", 2, 1, 1, 0),
				says(instance("green", 1, 1, 1, 0), metav1.ConditionFalse, addonsv1.InvalidValuesReason, "no map"),
			},
			addonsv1.ClusterCounts{Total: 2, Ready: 1}, 1, "platform-2", metav1.ConditionFalse, addonsv1.ClustersProgressingReason, "green",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &addonsv1.AddonStack{Status: addonsv1.AddonStackStatus{Instances: tc.instances}}
			s.Generation = 2
			sharing.Sum(s)
			if diff := cmp.Diff(&tc.counts, s.Status.Clusters); diff != "" {
				t.Errorf("clusters: -want +got:\n%s", diff)
			}
			if s.Status.ObservedGeneration != tc.observed || s.Status.LatestRevision != tc.revision {
				t.Errorf("generation %d, revision %s; want %d, %s", s.Status.ObservedGeneration, s.Status.LatestRevision, tc.observed, tc.revision)
			}
			c := conditions.Get(s, addonsv1.ReadyCondition)
			if c.Status != tc.ready || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
				t.Errorf("Ready is %s, %s: %q; want %s, %s: %q", c.Status, c.Reason, c.Message, tc.ready, tc.reason, tc.message)
			}
			if c.ObservedGeneration != tc.observed {
				t.Errorf("Ready is about generation %d; want %d, which `kubectl wait` looks at", c.ObservedGeneration, tc.observed)
			}
		})
	}
}

// A condition of the sum goes once no instance says it any more.
func TestSumDropsWhatNobodySays(t *testing.T) {
	s := &addonsv1.AddonStack{Status: addonsv1.AddonStackStatus{Instances: []addonsv1.StackInstance{instance("blue", 2, 1, 1, 0)}}}
	s.Generation = 2
	for _, kind := range []string{addonsv1.SourcesReadyCondition, addonsv1.RolledOutCondition} {
		conditions.Set(s, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Previous"})
	}
	sharing.Sum(s)
	for _, kind := range []string{addonsv1.SourcesReadyCondition, addonsv1.RolledOutCondition} {
		if c := conditions.Get(s, kind); c != nil {
			t.Errorf("%s is left", kind)
		}
	}
}

// Clusters that fail are told of before those that are on their way.
func TestSumTellsOfFailuresFirst(t *testing.T) {
	counts := &addonsv1.ClusterCounts{Total: 3, Ready: 1, Failed: 1}
	instances := []addonsv1.StackInstance{instance("all-well", 2, 1, 1, 0), instance("on-its-way", 2, 1, 0, 0), instance("with-a-failure", 2, 1, 0, 1), {WatchFilter: "says-nothing"}}
	c := sharing.ClustersReady(counts, instances, nil)
	failure, progress := strings.Index(c.Message, "with-a-failure"), strings.Index(c.Message, "on-its-way")
	if failure < 0 || progress < failure || strings.Count(c.Message, "with-a-failure:") != 1 || strings.Contains(c.Message, "all-well") {
		t.Errorf("got %q", c.Message)
	}
}

// An instance that ended is looked for where Clusters may have moved.
func TestMayMoveOthers(t *testing.T) {
	entry := func(generation int64, counts *addonsv1.ClusterCounts) *addonsv1.StackInstance {
		return &addonsv1.StackInstance{ObservedGeneration: generation, Clusters: counts}
	}
	two := &addonsv1.ClusterCounts{Total: 2, Ready: 1}
	for name, tc := range map[string]struct {
		before, after *addonsv1.StackInstance
		want          bool
	}{
		"it is new":                     {nil, entry(1, two), true},
		"it goes":                       {entry(1, two), nil, true},
		"an edit":                       {entry(1, two), entry(2, two), true},
		"clusters are counted":          {entry(1, nil), entry(1, two), true},
		"they aren't any more":          {entry(1, two), entry(1, nil), true},
		"a cluster comes":               {entry(1, two), entry(1, &addonsv1.ClusterCounts{Total: 3, Ready: 1}), true},
		"a cluster becomes ready":       {entry(1, two), entry(1, &addonsv1.ClusterCounts{Total: 2, Ready: 2}), false},
		"nothing is counted, as before": {entry(1, nil), entry(1, nil), false},
	} {
		if got := sharing.MayMoveOthers(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Whatever the instances say: the sum says no more than they do, in any order of
// their writes, and summing up again changes nothing.
func TestSumOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := &addonsv1.AddonStack{}
		s.Generation = 3
		for i := range 1 + random.IntN(5) {
			total := random.Int32N(4)
			failed := random.Int32N(total + 1)
			entry := instance(fmt.Sprintf("filter-%d", i), 2+random.Int64N(2), total, random.Int32N(total-failed+1), failed)
			s.Status.Instances = sharing.WithInstance(s.Status.Instances, entry.WatchFilter, &entry)
		}
		once := s.DeepCopy()
		sharing.Sum(once)
		all := true
		var total int32
		for _, i := range s.Status.Instances {
			total += i.Clusters.Total
			all = all && i.ObservedGeneration == 3 && i.Clusters.Ready == i.Clusters.Total
		}
		if ready := conditions.IsTrue(once, addonsv1.ReadyCondition); ready != all || once.Status.Clusters.Total != total {
			t.Fatalf("ready %v of %d clusters, from %+v", ready, once.Status.Clusters.Total, s.Status.Instances)
		}
		twice := once.DeepCopy()
		sharing.Sum(twice)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("a second time makes a difference:\n%s", diff)
		}
		shuffled := &addonsv1.AddonStack{}
		shuffled.Generation = 3
		order := slices.Clone(s.Status.Instances)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i := range order {
			shuffled.Status.Instances = sharing.WithInstance(shuffled.Status.Instances, order[i].WatchFilter, &order[i])
		}
		sharing.Sum(shuffled)
		if shuffled.Status.Clusters.Ready != once.Status.Clusters.Ready || conditions.GetMessage(shuffled, addonsv1.ReadyCondition) != conditions.GetMessage(once, addonsv1.ReadyCondition) {
			t.Fatalf("the order of writes makes a difference: %+v, %+v", shuffled.Status, once.Status)
		}
	}
}

// 64 instances may fail in many words.
func TestSumStaysShort(t *testing.T) {
	s := &addonsv1.AddonStack{}
	for i := range sharing.MaxInstances {
		entry := instance(fmt.Sprintf("filter-%d", i), 0, 5, 0, 5)
		for j := range entry.Conditions {
			entry.Conditions[j].Message = strings.Repeat("x", 1024)
		}
		s.Status.Instances = append(s.Status.Instances, entry)
	}
	sharing.Sum(s)
	if message := conditions.GetMessage(s, addonsv1.ClustersReadyCondition); len(message) > 8192 || !strings.Contains(message, "and 61 more") {
		t.Errorf("message of %d bytes: %.200s", len(message), message)
	}
}

// An instance takes nothing that others did for its own, also if a failure keeps it from looking.
func TestOwnPartOfARollout(t *testing.T) {
	s := &addonsv1.AddonStack{}
	s.Labels = map[string]string{clusterv1.WatchLabel: addonsv1.SharedWatchFilter}
	s.Status.Rollout = &addonsv1.RolloutStatus{Revision: "2", WavesDone: 1, Phase: addonsv1.RolloutSoaking, Completed: "0"}
	s.Status.Instances = []addonsv1.StackInstance{
		{WatchFilter: "blue", Rollout: &addonsv1.RolloutProgress{Revision: "2", WavesDone: 1}},
		{WatchFilter: "green", Rollout: &addonsv1.RolloutProgress{Revision: "1", WavesDone: 3}},
	}
	for filter, want := range map[string]addonsv1.RolloutStatus{
		"blue":  {Revision: "2", WavesDone: 1, Phase: addonsv1.RolloutSoaking, Completed: "0"},
		"green": {Revision: "1", WavesDone: 3, Phase: addonsv1.RolloutSoaking, Completed: "0"},
		"red":   {Phase: addonsv1.RolloutSoaking, Completed: "0"},
	} {
		got := sharing.Status{WatchFilter: filter}.ViewOf(s).Status.Rollout
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", filter, diff)
		}
	}
}
