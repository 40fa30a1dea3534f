// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// instanceReady has one series at a time. A process that waits for the lease of its instance has none.
var instanceReady = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "chandler_instance_ready",
	Help: "1 if this instance holds its scope and works, 0 if it doesn't, with the reason of the condition Ready.",
}, []string{"reason"})

// unmanagedClusters is as the shared deployment counts it, which serves no metrics.
var unmanagedClusters = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "chandler_instance_unmanaged_clusters",
	Help: "Number of Clusters in this instance's namespaces that no instance manages.",
})

func init() { metrics.Registry.MustRegister(instanceReady, unmanagedClusters) }

// measure sets whether the instance works.
func (f *roundResult) measure() {
	ready := f.ready()
	instanceReady.Reset()
	switch {
	case f.obstacle != nil && f.obstacle.standby:
	case f.obstacle != nil:
		instanceReady.WithLabelValues(f.obstacle.reason).Set(0)
	case ready.Reason == addonsv1.ReadyReason:
		instanceReady.WithLabelValues(ready.Reason).Set(1)
	default:
		instanceReady.WithLabelValues(ready.Reason).Set(0)
	}
}
