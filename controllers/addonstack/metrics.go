// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Each source of a stack has its own series, with the labels of status.sources: stack and add-on.
// The number of clusters doesn't matter. The series go with the stack. Users make stacks, so a namespace
// has series of a limited number of sources.
var (
	sourceLabels = []string{"namespace", "stack", "addon"}

	sourceChecks = prometheus.NewDesc("chandler_stack_source_checks_total",
		"Number of times that a source of a stack was looked at, by result: Success, or why it failed.", append(sourceLabels[:3:3], "result"), nil)
	sourceSeconds = prometheus.NewDesc("chandler_stack_source_check_duration_seconds",
		"How long looking at a source of a stack took.", sourceLabels, nil)
	sourceBytes = prometheus.NewDesc("chandler_stack_source_bytes_total",
		"Size of what was read from a source of a stack.", sourceLabels, nil)
	sourceLastCheck = prometheus.NewDesc("chandler_stack_source_last_check_timestamp_seconds",
		"When a source of a stack was last looked at, with success or not.", sourceLabels, nil)
	sourceLastSuccess = prometheus.NewDesc("chandler_stack_source_last_success_timestamp_seconds",
		"When a source of a stack was last looked at with success.", sourceLabels, nil)
)

// State gauges have the labels of stacks and of their add-ons, and count clusters. There are as many series for one
// cluster as for a thousand.
var (
	stackLabels = []string{"namespace", "stack"}

	stackClusters = prometheus.NewDesc("chandler_stack_clusters",
		"Number of clusters of a stack by state: ready, progressing, failed, waiting, unstarted, or held, which counts beside the others.",
		append(stackLabels[:2:2], "state"), nil)
	stackCondition = prometheus.NewDesc("chandler_stack_condition",
		"1 for the status that a condition of a stack has, 0 for the others.", append(stackLabels[:2:2], "type", "status"), nil)
	stackAddonClusters = prometheus.NewDesc("chandler_stack_addon_clusters",
		"Number of clusters of a stack on which an add-on is in a phase.", append(sourceLabels[:3:3], "phase"), nil)
)

// maxSources is how many sources of one namespace have series: those of the first stacks by name.
const maxSources = 512

// stackSources collects the series of all stacks' sources.
var stackSources = &collector{}

// rolloutPhases has one series for each stack with a rollout. It ends with the rollout, or the stack.
var rolloutPhases = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandler_stack_rollout_phase",
	Help: "1 for the phase that the rollout of a stack is in.",
}, []string{"namespace", "stack", "phase"})

func init() { metrics.Registry.MustRegister(stackSources, rolloutPhases, stackStates) }

// measureRollout sets the phase of a stack's rollout, "" for none.
func measureRollout(stack client.ObjectKey, phase addonsv1.RolloutPhase) {
	rolloutPhases.DeletePartialMatch(prometheus.Labels{"namespace": stack.Namespace, "stack": stack.Name})
	if phase != "" {
		rolloutPhases.WithLabelValues(stack.Namespace, stack.Name, string(phase)).Set(1)
	}
}

// collector makes the series when they are asked for, from what is known of the sources.
type collector struct {
	stacks sync.Map // client.ObjectKey to measured
}

// measured has the sources of one stack.
type measured struct {
	by   *source.Sources
	refs map[string]reference.Reference // by add-on, or [addonsv1.FollowedSource]
}

// set notes which sources a stack has now.
func (c *collector) set(s *addonsv1.AddonStack, by *source.Sources) {
	c.stacks.Store(client.ObjectKeyFromObject(s), measured{by, sourcesIn(s)})
}

// forget drops the series of a stack that is gone.
func (c *collector) forget(key client.ObjectKey) { c.stacks.Delete(key) }

// Describe implements [prometheus.Collector].
func (*collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{sourceChecks, sourceSeconds, sourceBytes, sourceLastCheck, sourceLastSuccess} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(series chan<- prometheus.Metric) {
	stacks := map[client.ObjectKey]measured{}
	for key, value := range c.stacks.Range {
		stacks[key.(client.ObjectKey)] = value.(measured)
	}
	sources := map[string]int{} // by namespace
	for _, of := range slices.SortedFunc(maps.Keys(stacks), func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }) {
		stack := stacks[of]
		if sources[of.Namespace] += len(stack.refs); sources[of.Namespace] > maxSources {
			continue
		}
		for addon, ref := range stack.refs {
			if checks, known := stack.by.Checks(ref); known {
				collect(series, checks, of.Namespace, of.Name, addon)
			}
		}
	}
}

// collect makes the series of one source.
func collect(series chan<- prometheus.Metric, checks source.Checks, labels ...string) {
	total := uint64(0)
	for result, count := range checks.Results {
		total += count
		series <- prometheus.MustNewConstMetric(sourceChecks, prometheus.CounterValue, float64(count), append(labels[:3:3], result)...)
	}
	series <- prometheus.MustNewConstSummary(sourceSeconds, total, checks.Took.Seconds(), nil, labels...)
	series <- prometheus.MustNewConstMetric(sourceBytes, prometheus.CounterValue, float64(checks.Bytes), labels...)
	for desc, when := range map[*prometheus.Desc]time.Time{sourceLastCheck: checks.Last, sourceLastSuccess: checks.LastSuccess} {
		if !when.IsZero() {
			series <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(when.Unix()), labels...)
		}
	}
}
