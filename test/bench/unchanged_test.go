// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// BenchmarkUnchanged measures a reconcile of a ClusterAddon whose four add-ons are as they should be, by events of its
// Cluster. It reports how long the reconcile takes. It also reports the manager's processor time, with that of all
// that such an event starts.
func BenchmarkUnchanged(b *testing.B) {
	g := NewWithT(b)
	f := startFleet(b, size{Clusters: 1, Servers: 1, Instances: 1, Addons: 4, Renderers: 1}, realdata.Path(b, "charts"))
	f.install()
	f.settle()
	const histogram, controller = "controller_runtime_reconcile_time_seconds", `controller="clusteraddon"`
	used := func() (reconciles, seconds float64, cpu time.Duration) {
		manager.AwaitRest(b, f.managers...)
		_, cpu, _ = f.cpu()
		return f.metric(histogram+"_count", controller), f.metric(histogram+"_sum", controller), cpu
	}
	reconcilesBefore, secondsBefore, cpuBefore := used()
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = namespace, f.clusters[0].name
	n := 0
	for b.Loop() {
		n++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"benchmark":"%d"}}}`, n)
		g.Expect(f.hub.Patch(b.Context(), c, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
	reconciles, seconds, cpu := used()
	reconciles -= reconcilesBefore
	b.ReportMetric((seconds-secondsBefore)*1e9/reconciles, "ns/reconcile")
	b.ReportMetric(float64((cpu-cpuBefore).Nanoseconds())/reconciles, "cpu-ns/reconcile")
	b.ReportMetric(0, "ns/op") // the time of an event's request says nothing
	if reconciles < 1 {
		b.Error("there was no reconcile")
	}
}
