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
	"github.com/cluster-chandler/chandler/test/long"
)

// TestUpgradesThroughKills upgrades Clusters while Chandler with its hook server, and Cluster API, are killed at random
// moments, and the management cluster doesn't answer at times. CHANDLER_UPGRADES is how many upgrades there are, by default one Cluster's two.
func TestUpgradesThroughKills(t *testing.T) {
	long.Test(t)
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
		previous := []string{v34, v35}[upgrade]
		since := tn.mark(name)
		tn.set(stack(version, previous))
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
		since.expectOrder(version, version, "a0", "a1", "a2")
	}
	for i := range points {
		releases := &corev1.SecretList{}
		g.Expect(world.Provider.Workload(key(tn.at(name))).List(t.Context(), releases, client.InNamespace(tn.namespace),
			client.MatchingLabels{"owner": "helm", "name": fmt.Sprintf("a%d", i)})).To(Succeed())
		g.Expect(releases.Items).To(HaveLen(3), "each change is delivered once")
	}
}

// pauseAPIServer has the management cluster answer nothing for a while.
func (tn *tenant) pauseAPIServer(while time.Duration) {
	if err := world.PauseAPIServer(); err != nil {
		tn.Error(err)
		return
	}
	time.Sleep(while)
	if err := world.ResumeAPIServer(); err != nil {
		tn.Error(err)
	}
}

// keepKilling kills and restarts processes, and has the management cluster be slow, until the context ends.
func (tn *tenant) keepKilling(ctx context.Context, random *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Intn(8000)) * time.Millisecond):
		}
		switch random.Intn(4) {
		case 0:
			tn.pauseAPIServer(time.Duration(random.Intn(2000)) * time.Millisecond)
			continue
		case 1:
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
