// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestDeletionWithAddons deletes a Cluster whose ingress is to be removed first, and what depends on it before that. A
// finalizer, as of a load balancer, keeps it for a while.
func TestDeletionWithAddons(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t, "deleting", "--instance-heartbeat=4s")
	const name, kept = "c", "kept"
	ingress := tn.addon("ingress", addonsv1.UpgradeIndependent, "first")
	ingress.Lifecycle.OnClusterDelete = addonsv1.OnClusterDeleteRemove
	site := tn.addon("site", addonsv1.UpgradeIndependent, "first")
	site.DependsOn = []string{"ingress"}
	tn.set(tn.stack(ingress, site, tn.addon("cni", addonsv1.UpgradeIndependent, "first")))
	for _, cluster := range []string{name, kept} {
		createCluster(t, tn.at(cluster), localClass, v34, 0)
	}
	for _, cluster := range []string{name, kept} {
		awaitCondition(t, tn.at(cluster), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
		for _, addon := range []string{"ingress", "site", "cni"} {
			tn.ready(cluster, addon, "first")
		}
		tn.await(cluster, "all is installed", isReady)
	}
	workload := world.Provider.Workload(key(tn.at(name)))
	balancer := &corev1.ConfigMap{}
	at := client.ObjectKey{Namespace: tn.namespace, Name: "ingress"}
	g.Expect(workload.Get(t.Context(), at, balancer)).To(Succeed())
	finalized := balancer.DeepCopy()
	finalized.Finalizers = []string{"example.org/load-balancer"}
	g.Expect(workload.Patch(t.Context(), finalized, client.MergeFrom(balancer))).To(Succeed())

	deleteCluster(t, tn.at(name))
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "Add-ons are removed before the Cluster: ingress")
	tn.await(name, "it says what is left", func(ca *addonsv1.ClusterAddon) error {
		if d := ca.Status.Deletion; d == nil || d.State != addonsv1.GateWaiting || d.Deadline.IsZero() {
			return fmt.Errorf("it is %+v", d)
		}
		return nil
	})
	tn.chandler.Kill()
	tn.chandler.Launch()
	until(t, "the load balancer is to go", func() error {
		if err := workload.Get(t.Context(), at, balancer); err != nil {
			return err
		}
		if balancer.DeletionTimestamp.IsZero() {
			return errors.New("it isn't being deleted")
		}
		return nil
	})
	gone := &corev1.ConfigMap{}
	err := workload.Get(t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: "site"}, gone)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "what depends on it goes first: %v", err)
	tn.expectText(name, "cni", "first")
	expectState(t, tn.at(name), state{controlPlane: v34, runs: v34})

	before := balancer.DeepCopy()
	balancer.Finalizers = nil
	g.Expect(workload.Patch(t.Context(), balancer, client.MergeFrom(before))).To(Succeed())
	awaitGone(t, tn.at(name))

	// One that moves to another management cluster is deleted here, and lives on.
	annotate(t, tn.at(kept), "clusterctl.cluster.x-k8s.io/delete-for-move", "")
	world.hooks.block(kept, "BeforeClusterDelete", "not yet")
	survivor := world.Provider.Workload(key(tn.at(kept)))
	deleteCluster(t, tn.at(kept))
	awaitBlocked(t, tn.at(kept), "BeforeClusterDelete", "not yet")
	tn.await(kept, "nothing is removed", func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.Deletion != nil {
			return fmt.Errorf("it is %+v", ca.Status.Deletion)
		}
		return nil
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tn.namespace, Name: "ingress"}}
	g.Expect(survivor.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	g.Expect(cm.DeletionTimestamp).To(BeNil())
	world.hooks.open(kept, "BeforeClusterDelete")
	awaitGone(t, tn.at(kept))
}
