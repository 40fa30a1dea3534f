// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// rolloutPhases has one series for each stack with a rollout. It ends with the rollout, or the stack.
var rolloutPhases = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandler_stack_rollout_phase",
	Help: "1 for the phase that the rollout of a stack is in.",
}, []string{"namespace", "stack", "phase"})

func init() { metrics.Registry.MustRegister(rolloutPhases) }

// measureRollout sets the phase of a stack's rollout, "" for none.
func measureRollout(stack client.ObjectKey, phase addonsv1.RolloutPhase) {
	rolloutPhases.DeletePartialMatch(prometheus.Labels{"namespace": stack.Namespace, "stack": stack.Name})
	if phase != "" {
		rolloutPhases.WithLabelValues(stack.Namespace, stack.Name, string(phase)).Set(1)
	}
}
