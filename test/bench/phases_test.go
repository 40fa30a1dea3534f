// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/wait"
)

// atRest is how long the fleet is looked at while nothing changes.
const atRest = time.Minute

// install makes the stack, and returns once all clusters are ready.
func (f *fleet) install() phase {
	begin := f.snapshot()
	NewWithT(f.TB).Expect(f.hub.Create(f.Context(), f.stack(1))).To(Succeed())
	f.await("ready", f.ready(1))
	return f.since(begin)
}

// upgrade changes one value, and with it one object of each cluster.
func (f *fleet) upgrade() phase {
	g := NewWithT(f.TB)
	begin := f.snapshot()
	stack := &addonsv1.AddonStack{}
	g.Expect(f.hub.Get(f.Context(), client.ObjectKeyFromObject(f.stack(1)), stack)).To(Succeed())
	before := stack.DeepCopy()
	stack.Spec = f.stack(2).Spec
	g.Expect(f.hub.Patch(f.Context(), stack, client.MergeFrom(before))).To(Succeed())
	f.await("upgraded", f.ready(2))
	return f.since(begin)
}

// drift changes a field of one object in each cluster at the same time, and returns once all are as they were.
func (f *fleet) drift() phase {
	g := NewWithT(f.TB)
	begin := f.snapshot()
	const other = 7
	f.each(func(_ int, c *cluster) {
		change := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, other)
		g.Expect(c.server.Patch(f.Context(), c.metricsServer(), client.RawPatch(types.MergePatchType, change), client.FieldOwner("somebody"))).To(Succeed())
	})
	f.each(func(_ int, c *cluster) {
		o := c.metricsServer()
		g.Eventually(func() error {
			if err := c.server.Get(f.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if n := *o.Spec.Replicas; n == other {
				return fmt.Errorf("%s has %d replicas", client.ObjectKeyFromObject(o), n)
			}
			return nil
		}).WithTimeout(f.patience()).WithPolling(20 * time.Millisecond).Should(Succeed())
	})
	seconds := time.Since(begin.at).Seconds()
	f.settle()
	p := f.since(begin)
	p.Seconds = seconds
	return p
}

// metricsServer names the Deployment on the cluster's server.
func (c *cluster) metricsServer() *appsv1.Deployment {
	o := &appsv1.Deployment{}
	o.Namespace, o.Name = c.Prefix+"kube-system", "metrics-server"
	return o
}

// restart ends the managers and starts them again. It returns once nothing is asked any more.
func (f *fleet) restart() phase {
	for _, m := range f.managers {
		m.Stop(f.TB)
	}
	begin := f.snapshot()
	for _, m := range f.managers {
		m.Launch()
	}
	wait.Until(f.TB, f.patience(), "all are connected again", func() error {
		n := 0.0
		for _, m := range f.managers {
			// A manager that starts has no metrics yet.
			if value, err := m.Sum("chandler_fleet_clusters", `phase="Connected"`); err == nil {
				n += value
			}
		}
		if int(n) < len(f.clusters) {
			return fmt.Errorf("%v are", n)
		}
		return nil
	})
	seconds := time.Since(begin.at).Seconds()
	seconds += f.settle().Seconds()
	p := f.since(begin)
	p.Seconds = seconds
	return p
}
