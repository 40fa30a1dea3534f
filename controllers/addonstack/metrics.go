// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
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
	rolloutPhase = prometheus.NewDesc("chandler_stack_rollout_phase",
		"1 for the phase that the rollout of a stack is in.", append(stackLabels[:2:2], "phase"), nil)
	stackAddonClusters = prometheus.NewDesc("chandler_stack_addon_clusters",
		"Number of clusters of a stack on which an add-on is in a phase.", append(sourceLabels[:3:3], "phase"), nil)
)

// maxSources is how many sources or add-ons of one namespace have series: those of the first stacks by name.
const maxSources = 512

func init() { metrics.Registry.MustRegister(stackSeries) }

// collectSources makes the series of a stack's sources.
func collectSources(series chan<- prometheus.Metric, by *source.Sources, s *addonsv1.AddonStack) {
	for addon, ref := range sourcesIn(s) {
		checks, known := by.Checks(ref)
		if !known {
			continue
		}
		labels, total := []string{s.Namespace, s.Name, addon}, uint64(0)
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
}
