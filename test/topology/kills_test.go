// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestUpgradesThroughKills upgrades Clusters while Chandler with its hook server, and Cluster API, are killed at random
// moments. CHANDLER_UPGRADES is how many upgrades there are, by default one Cluster's two.
func TestUpgradesThroughKills(t *testing.T) {
	upgrades := 2
	if text := os.Getenv("CHANDLER_UPGRADES"); text != "" {
		var err error
		if upgrades, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	tn := newTenant(t, "killed", "--instance-heartbeat=2s")
	for i := range (upgrades + 1) / 2 {
		name := fmt.Sprintf("c%d", i)
		tn.upgradeWhileKilled(name, rand.New(rand.NewSource(int64(i))))
		deleteCluster(t, tn.at(name))
		awaitGone(t, tn.at(name))
	}
}

// upgradeWhileKilled makes a Cluster and upgrades it twice.
func (tn *tenant) upgradeWhileKilled(name string, random *rand.Rand) {
	t, g := tn.T, NewWithT(tn.T)
	points := []addonsv1.UpgradePoint{addonsv1.UpgradeBeforeControlPlane, addonsv1.UpgradeAfterControlPlane, addonsv1.UpgradeAfterWorkers}
	stack := func(network, others string) *addonsv1.AddonStack {
		return tn.stack(tn.addon("a0", points[0], network), tn.addon("a1", points[1], others), tn.addon("a2", points[2], others))
	}
	tn.set(stack(v34, v34))
	createCluster(t, tn.at(name), localClass, v34, 1)
	awaitCondition(t, tn.at(name), clusterv1.ClusterAvailableCondition, true, "")
	for i := range points {
		tn.ready(name, fmt.Sprintf("a%d", i), v34)
	}
	tn.await(name, "all is installed", isReady)
	awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")

	for upgrade, version := range []string{v35, v36} {
		former := []string{v34, v35}[upgrade]
		order := tn.watchOrder(name, former, version)
		tn.set(stack(version, former))
		setVersion(t, tn.at(name), version)
		// Whatever is changed once the Cluster's wish was seen waits for its point.
		tn.await(name, "the upgrade is seen", func(ca *addonsv1.ClusterAddon) error {
			if u := ca.Status.Upgrade; u == nil || u.Target != version {
				return fmt.Errorf("it is %+v", u)
			}
			return nil
		})
		tn.set(stack(version, version))
		ctx, cancel := context.WithCancel(t.Context())
		var killing sync.WaitGroup
		world.killing.Store(true)
		killing.Go(func() { tn.keepKilling(ctx, random) })
		for i := range points {
			tn.ready(name, fmt.Sprintf("a%d", i), version)
		}
		cancel()
		killing.Wait()
		world.killing.Store(false)
		awaitState(t, tn.at(name), state{controlPlane: version, runs: version, workers: version})
		tn.await(name, "the upgrade is done", isDone)
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, true, "")
		g.Expect(order()).To(BeEmpty())
	}
	for i := range points {
		releases := &corev1.SecretList{}
		g.Expect(world.Provider.Workload(key(tn.at(name))).List(t.Context(), releases, client.InNamespace(tn.namespace),
			client.MatchingLabels{"owner": "helm", "name": fmt.Sprintf("a%d", i)})).To(Succeed())
		g.Expect(releases.Items).To(HaveLen(3), "each change is delivered once")
	}
}

// keepKilling kills and restarts processes until the context ends.
func (tn *tenant) keepKilling(ctx context.Context, random *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Intn(8000)) * time.Millisecond):
		}
		if random.Intn(3) == 0 {
			world.Core.Kill()
			if err := world.Core.Start(context.WithoutCancel(ctx)); err != nil {
				tn.Error(err)
				return
			}
			continue
		}
		tn.chandler.Kill()
		tn.chandler.Launch()
	}
}

// watchOrder watches a Cluster's control plane, its workers and its add-ons during an upgrade. What it returns tells
// what came before its time.
func (tn *tenant) watchOrder(name, former, version string) (wrong func() []string) {
	ctx, cancel := context.WithCancel(tn.Context())
	workload := world.Provider.Workload(key(tn.at(name)))
	var found []string
	var watching sync.WaitGroup
	text := func(addon string) (is string, ready bool) {
		cm := &corev1.ConfigMap{}
		if err := workload.Get(ctx, client.ObjectKey{Namespace: tn.namespace, Name: addon}, cm); err != nil {
			return former, false
		}
		return cm.Data["text"], cm.Annotations["ready"] == cm.Data["text"]
	}
	watching.Go(func() {
		for ctx.Err() == nil {
			// What comes first in an upgrade is read last, so that nothing seems to be too early.
			workers, _ := text("a2")
			controller, _ := text("a1")
			is, err := readState(ctx, tn.at(name))
			_, ready := text("a0")
			switch {
			case err != nil || ctx.Err() != nil:
			case is.controlPlane == version && is.controlPlane != former && !ready:
				found = append(found, "the control plane was upgraded before the network was ready")
			case controller == version && is.runs != version:
				found = append(found, "the cloud controller was changed before the control plane ran the version: "+is.String())
			case workers == version && is.workers != version:
				found = append(found, "the autoscaler was changed before the workers: "+is.String())
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() []string {
		cancel()
		watching.Wait()
		return found
	}
}
