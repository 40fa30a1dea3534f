// SPDX-License-Identifier: Apache-2.0

// Package gauges makes the series of AddonStacks.
package gauges

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Series makes the series of stacks when they are asked for, from the cache: nothing is kept beside it, so nothing gets
// stale.
type Series struct{ Cache client.Reader }

// Describe implements [prometheus.Collector].
func (Series) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{stackClusters, stackCondition, stackAddonClusters, rolloutPhase, versionsWaiting} {
		descs <- desc
	}
}

// readTimeout bounds the wait for the cache, which has nothing at first. Then there are no series.
const readTimeout = time.Second

// Collect implements [prometheus.Collector].
func (s Series) Collect(series chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	stacks, clusters := &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}
	for _, list := range []client.ObjectList{stacks, clusters} { // they are only read
		if err := s.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return
		}
	}
	slices.SortFunc(stacks.Items, func(a, b addonsv1.AddonStack) int { return cmp.Compare(a.Name, b.Name) })
	counts, total := countClusters(clusters.Items), map[string]int{} // the total by namespace
	for i := range stacks.Items {
		s := &stacks.Items[i]
		key := client.ObjectKeyFromObject(s)
		is := counts.of(key)
		delete(counts, key)
		for k := range s.Spec.Addons { // clusters have others, too, as of a bundle
			is.addon(s.Spec.Addons[k].Name)
		}
		if total[s.Namespace] += max(1, len(is.addons)); total[s.Namespace] > MaxAddons {
			continue
		}
		collectStack(gaugesOf(series, key), s, is)
	}
	for gone, is := range counts { // a removal is held after its stack was deleted
		if is.held == 0 {
			continue
		}
		if total[gone.Namespace]++; total[gone.Namespace] <= MaxAddons {
			gaugesOf(series, gone)(stackClusters, is.held, "held")
		}
	}
}

// stackCounts are numbers of clusters.
type stackCounts map[client.ObjectKey]*clusterCounts

// clusterCounts are numbers of clusters of a stack.
type clusterCounts struct {
	held   int
	addons map[string]map[addonsv1.AddonPhase]int // by name
}

func countClusters(clusters []addonsv1.ClusterAddon) stackCounts {
	counts := stackCounts{}
	for i := range clusters {
		ca := &clusters[i]
		for k := range ca.Spec.Stacks {
			if assigned := &ca.Spec.Stacks[k]; assigned.HeldRemoval != nil {
				counts.of(client.ObjectKey{Namespace: ca.Namespace, Name: assigned.Name}).held++
			}
		}
		for k := range ca.Status.Addons {
			a := &ca.Status.Addons[k]
			phase := a.Phase
			if reasons.Of(a.Reason).Stalls(phase) { // alerts don't wait for what needs a person
				phase = addonsv1.AddonFailed
			}
			counts.of(client.ObjectKey{Namespace: ca.Namespace, Name: a.Stack}).addon(a.Name)[phase]++
		}
	}
	return counts
}

// of returns the numbers of a stack, which are there from then on.
func (c stackCounts) of(stack client.ObjectKey) *clusterCounts {
	if c[stack] == nil {
		c[stack] = &clusterCounts{addons: map[string]map[addonsv1.AddonPhase]int{}}
	}
	return c[stack]
}

// addon returns the numbers of an add-on, which are there from then on.
func (c *clusterCounts) addon(name string) map[addonsv1.AddonPhase]int {
	if c.addons[name] == nil {
		c.addons[name] = map[addonsv1.AddonPhase]int{}
	}
	return c.addons[name]
}

// gaugesOf returns a function that makes a series of a stack. The labels follow those of the stack.
func gaugesOf(series chan<- prometheus.Metric, of client.ObjectKey) func(desc *prometheus.Desc, value int, labels ...string) {
	return func(desc *prometheus.Desc, value int, labels ...string) {
		series <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{of.Namespace, of.Name}, labels...)...)
	}
}

// collectStack makes the series of a stack and its add-ons.
func collectStack(gauge func(*prometheus.Desc, int, ...string), s *addonsv1.AddonStack, is *clusterCounts) {
	counts := ptr.Deref(s.Status.Clusters, addonsv1.ClusterCounts{})
	for state, count := range map[string]int32{
		"ready": counts.Ready, "failed": counts.Failed, "waiting": counts.Waiting, "unstarted": ptr.Deref(counts.Unstarted, 0),
		"progressing": stack.Progressing(counts), "held": int32(is.held),
	} {
		gauge(stackClusters, int(count), state)
	}
	for name, clusters := range is.addons {
		for _, phase := range stack.Phases {
			gauge(stackAddonClusters, clusters[phase], name, string(phase))
		}
	}
	if s.Status.Rollout != nil {
		gauge(rolloutPhase, 1, string(s.Status.Rollout.Phase))
	}
	if len(s.Status.Following) > 0 {
		gauge(versionsWaiting, countWaiting(s.Status.Following))
	}
	for _, kind := range []string{addonsv1.ReadyCondition, addonsv1.ValidCondition, addonsv1.SourcesReadyCondition, addonsv1.RolledOutCondition} {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			value := 0
			if meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, kind, status) {
				value = 1
			}
			gauge(stackCondition, value, kind, string(status))
		}
	}
}

func countWaiting(following []addonsv1.FollowedVersion) (waiting int) {
	for i := range following {
		if following[i].Available != "" {
			waiting++
		}
	}
	return waiting
}
