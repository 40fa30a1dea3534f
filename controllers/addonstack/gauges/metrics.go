// SPDX-License-Identifier: Apache-2.0

package gauges

import "github.com/prometheus/client_golang/prometheus"

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
	versionsWaiting = prometheus.NewDesc("chandler_stack_versions_waiting",
		"Number of newer versions that a stack's add-ons follow and don't take.", stackLabels, nil)
	stackAddonClusters = prometheus.NewDesc("chandler_stack_addon_clusters",
		"Number of clusters of a stack on which an add-on is in a phase.", append(stackLabels[:2:2], "addon", "phase"), nil)
)

// MaxAddons is how many add-ons of one namespace have series: those of the first stacks by name. Users make stacks.
const MaxAddons = 512
