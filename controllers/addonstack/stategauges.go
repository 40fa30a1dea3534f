// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// collector makes the series of stacks when they are asked for, from the cache and from what is known of sources:
// nothing is kept beside these, so nothing gets stale.
type collector struct{ of atomic.Pointer[Reconciler] }

// stackSeries are the series of the stacks of this process's reconciler.
var stackSeries = &collector{}

// Describe implements [prometheus.Collector].
func (*collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		stackClusters, stackCondition, stackAddonClusters, rolloutPhase, sourceChecks, sourceSeconds, sourceBytes, sourceLastCheck, sourceLastSuccess,
	} {
		descs <- desc
	}
}

// readTimeout bounds the wait for the cache, which has nothing at first. Then there are no series.
const readTimeout = time.Second

// Collect implements [prometheus.Collector].
func (c *collector) Collect(series chan<- prometheus.Metric) {
	r := c.of.Load()
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	stacks, clusters := &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}
	for _, list := range []client.ObjectList{stacks, clusters} { // they are only read
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return
		}
	}
	slices.SortFunc(stacks.Items, func(a, b addonsv1.AddonStack) int { return compareKeys(&a, &b) })
	found := countClusters(clusters.Items)
	addons := map[string]int{} // by namespace
	for i := range stacks.Items {
		s := &stacks.Items[i]
		names := found.addonsOf(s)
		if addons[s.Namespace] += max(1, len(names)); addons[s.Namespace] > maxSources { // users make stacks
			delete(found.held, client.ObjectKeyFromObject(s))
			continue
		}
		collectStack(series, s)
		collectSources(series, r.Sources, s)
		series <- heldGauge(client.ObjectKeyFromObject(s), found.held[client.ObjectKeyFromObject(s)])
		delete(found.held, client.ObjectKeyFromObject(s))
		for _, name := range names {
			for _, phase := range phases {
				count := float64(found.phases[addonPhase{client.ObjectKeyFromObject(s), name, phase}])
				series <- prometheus.MustNewConstMetric(stackAddonClusters, prometheus.GaugeValue, count, s.Namespace, s.Name, name, string(phase))
			}
		}
	}
	for gone, held := range found.held { // a removal is held after its stack was deleted
		if addons[gone.Namespace]++; addons[gone.Namespace] <= maxSources {
			series <- heldGauge(gone, held)
		}
	}
}

func heldGauge(stack client.ObjectKey, held int) prometheus.Metric {
	return prometheus.MustNewConstMetric(stackClusters, prometheus.GaugeValue, float64(held), stack.Namespace, stack.Name, "held")
}

func compareKeys(a, b *addonsv1.AddonStack) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// phases that an add-on may be in.
var phases = []addonsv1.AddonPhase{addonsv1.AddonPending, addonsv1.AddonInstalling, addonsv1.AddonUpgrading, addonsv1.AddonReady,
	addonsv1.AddonDegraded, addonsv1.AddonFailed, addonsv1.AddonRemoving, addonsv1.AddonUnassigned}

// addonPhase is a phase of an add-on of a stack.
type addonPhase struct {
	stack client.ObjectKey
	addon string
	phase addonsv1.AddonPhase
}

// clusterCounts are numbers of clusters.
type clusterCounts struct {
	held   map[client.ObjectKey]int // by stack
	phases map[addonPhase]int
	addons map[client.ObjectKey]sets.Set[string] // by stack, those that clusters have
}

func countClusters(clusters []addonsv1.ClusterAddon) clusterCounts {
	is := clusterCounts{map[client.ObjectKey]int{}, map[addonPhase]int{}, map[client.ObjectKey]sets.Set[string]{}}
	for i := range clusters {
		ca := &clusters[i]
		for k := range ca.Spec.Stacks {
			if assigned := &ca.Spec.Stacks[k]; assigned.HeldRemoval != nil {
				is.held[client.ObjectKey{Namespace: ca.Namespace, Name: assigned.Name}]++
			}
		}
		for k := range ca.Status.Addons {
			a := &ca.Status.Addons[k]
			of := client.ObjectKey{Namespace: ca.Namespace, Name: a.Stack}
			is.phases[addonPhase{of, a.Name, a.Phase}]++
			if is.addons[of] == nil {
				is.addons[of] = sets.New[string]()
			}
			is.addons[of].Insert(a.Name)
		}
	}
	return is
}

// addonsOf returns the names of a stack's add-ons: those of its spec, and what clusters have of it, as of a bundle.
func (c *clusterCounts) addonsOf(s *addonsv1.AddonStack) []string {
	names := sets.New[string]().Union(c.addons[client.ObjectKeyFromObject(s)])
	for i := range s.Spec.Addons {
		names.Insert(s.Spec.Addons[i].Name)
	}
	return sets.List(names)
}

// collectStack makes the series of a stack, but for those of its add-ons.
func collectStack(series chan<- prometheus.Metric, s *addonsv1.AddonStack) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		series <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{s.Namespace, s.Name}, labels...)...)
	}
	counts := ptr.Deref(s.Status.Clusters, addonsv1.ClusterCounts{})
	for state, count := range map[string]int32{
		"ready": counts.Ready, "failed": counts.Failed, "waiting": counts.Waiting, "unstarted": ptr.Deref(counts.Unstarted, 0),
		"progressing": stack.Progressing(counts),
	} {
		gauge(stackClusters, float64(count), state)
	}
	if s.Status.Rollout != nil {
		gauge(rolloutPhase, 1, string(s.Status.Rollout.Phase))
	}
	for _, kind := range []string{addonsv1.ReadyCondition, addonsv1.ValidCondition, addonsv1.SourcesReadyCondition, addonsv1.RolledOutCondition} {
		c := meta.FindStatusCondition(s.Status.Conditions, kind)
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			value := 0.0
			if c != nil && c.Status == status {
				value = 1
			}
			gauge(stackCondition, value, kind, string(status))
		}
	}
}
