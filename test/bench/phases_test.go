// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// install makes the stack, and returns once all clusters are ready.
func (f *fleet) install() phase {
	begin := f.snapshot()
	NewWithT(f.T).Expect(f.hub.Create(f.Context(), f.stack(1))).To(Succeed())
	f.await(1)
	return f.since(begin)
}

// upgrade changes one value, and with it one object of each cluster.
func (f *fleet) upgrade() phase {
	g := NewWithT(f.T)
	begin := f.snapshot()
	stack := &addonsv1.AddonStack{}
	g.Expect(f.hub.Get(f.Context(), client.ObjectKeyFromObject(f.stack(1)), stack)).To(Succeed())
	before := stack.DeepCopy()
	stack.Spec = f.stack(2).Spec
	g.Expect(f.hub.Patch(f.Context(), stack, client.MergeFrom(before))).To(Succeed())
	f.await(2)
	return f.since(begin)
}

// drift changes a field of one object in each cluster at the same time, and returns once all are as
// they were.
func (f *fleet) drift() phase {
	g := NewWithT(f.T)
	begin := f.snapshot()
	key := client.ObjectKey{Namespace: "kube-system", Name: "metrics-server"}
	var changes sync.WaitGroup
	for _, c := range f.clusters {
		changes.Go(func() {
			o := &appsv1.Deployment{}
			o.Namespace, o.Name = key.Namespace, key.Name
			g.Expect(c.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`)), client.FieldOwner("somebody"))).To(Succeed())
		})
	}
	changes.Wait()
	for _, c := range f.clusters {
		g.Eventually(func() error {
			o := &appsv1.Deployment{}
			if err := c.Get(f.Context(), key, o); err != nil {
				return err
			}
			if n := *o.Spec.Replicas; n == 7 {
				return fmt.Errorf("%s has %d replicas", key, n)
			}
			return nil
		}).WithTimeout(patience).WithPolling(20 * time.Millisecond).Should(Succeed())
	}
	seconds := time.Since(begin.at).Seconds()
	f.settle()
	p := f.since(begin)
	p.Seconds = seconds
	return p
}

// restart ends the manager and starts it again. It returns once nothing is asked any more.
func (f *fleet) restart() phase {
	f.manager.Stop(f.T)
	begin := f.snapshot()
	f.manager.Launch()
	f.settle()
	return f.since(begin)
}
