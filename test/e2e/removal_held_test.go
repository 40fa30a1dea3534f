// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// prodClusters are Clusters with the label env=prod, on servers of their own: three, or as
// many as CHANDLER_E2E_CLUSTERS says.
func (tn *tenant) prodClusters() (names []string, servers []*server) {
	tn.t.Helper()
	for i := range max(workloadServers, environmentNumber(tn.t, "CHANDLER_E2E_CLUSTERS", 0)) {
		name, s := fmt.Sprintf("prod-%02d", i), workloadServer(tn.t, i)
		tn.makeCluster(name, s, labels("env=prod"))
		names, servers = append(names, name), append(servers, s)
	}
	return names, servers
}

// newProdFleet returns a tenant with add-on settings of AddonStack platform on all prodClusters, and the path of its chart.
func newProdFleet(t *testing.T) (tn *tenant, path string, clusters []string, servers []*server) {
	t.Helper()
	tn = newTenant(t)
	path = tn.writeChart("settings", "1.0.0", configMapChart)
	clusters, servers = tn.prodClusters()
	tn.startManager()
	tn.install(tn.addon("settings", path))
	return tn, path, clusters, servers
}

// watchDeletionsOn is watchDeletions on several servers.
func (tn *tenant) watchDeletionsOn(servers []*server) func() []string {
	tn.t.Helper()
	var watches []func() []string
	for _, s := range servers {
		watches = append(watches, tn.watchDeletions(s))
	}
	return func() (deleted []string) {
		tn.t.Helper()
		for _, end := range watches {
			deleted = append(deleted, end()...)
		}
		return deleted
	}
}

// heldOn expects a held removal of the stack on a cluster, with this cause.
func heldOn(stack string, cause addonsv1.RemovalCause) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		for _, s := range ca.Spec.Stacks {
			if s.Name == stack && s.HeldRemoval != nil && s.HeldRemoval.Cause == cause {
				return checkCondition(ca, addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason, addonsv1.ConfirmRemovalAnnotation+"="+s.HeldRemoval.Confirmation)
			}
		}
		return fmt.Errorf("no removal of stack %s is held for %s: %+v", stack, cause, ca.Spec.Stacks)
	}
}

// confirm does what the message says.
func (tn *tenant) confirm(cluster, stack string) {
	tn.t.Helper()
	change(tn, tn.clusterAddon(cluster), func(ca *addonsv1.ClusterAddon) {
		for _, s := range ca.Spec.Stacks {
			if s.Name == stack && s.HeldRemoval != nil {
				metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, s.HeldRemoval.Confirmation)
			}
		}
	})
}

// TestLargeRemovalIsHeld makes the mistakes that take add-ons away from many clusters.
func TestLargeRemovalIsHeld(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	mistakes := map[string]struct {
		make, undo func(*tenant)
		cause      addonsv1.RemovalCause
		gone       bool // the stack is
	}{
		"a letter": {
			make: func(tn *tenant) {
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("env=prdo") })
			},
			undo: func(tn *tenant) {
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("env=prod") })
			},
			cause: addonsv1.RemovalNotSelected,
		},
		"an add-on": {
			make: func(tn *tenant) {
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Name = "setings" })
			},
			undo: func(tn *tenant) {
				tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Name = "settings" })
			},
			cause: addonsv1.RemovalAddonsDropped,
		},
		"the stack": {
			make: func(tn *tenant) { tn.remove(tn.newStack("platform", nil)) },
			undo: func(tn *tenant) {
				tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "settings-1.0.0.tgz"))
			},
			cause: addonsv1.RemovalStackDeleted, gone: true,
		},
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			tn, path, clusters, servers := newProdFleet(t)
			tn.settle()
			deletions := tn.watchDeletionsOn(servers)

			begin := time.Now()
			mistake.make(tn)
			for _, cluster := range clusters {
				tn.awaitCluster(cluster, "the removal is held", heldOn("platform", mistake.cause))
			}
			if !mistake.gone {
				tn.awaitStack("platform", "the stack says what would go", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason,
					fmt.Sprintf("from %d of %d clusters", len(clusters), len(clusters)))
			}
			t.Logf("%d clusters: what is held is on screen after %s", len(clusters), time.Since(begin).Round(100*time.Millisecond))
			tn.awaitEvent(addonsv1.RemovalHeldReason, addonsv1.ConfirmRemovalAnnotation)
			tn.restart()
			tn.settle()
			tn.awaitCluster(clusters[0], "also after a restart", heldOn("platform", mistake.cause))
			tn.Expect(deletions()).To(BeEmpty(), "nothing is removed before it is confirmed")

			if mistake.gone {
				mistake.undo = func(tn *tenant) { tn.makeStack("platform", labels("env=prod"), tn.addon("settings", path)) }
			}
			deletions = tn.watchDeletionsOn(servers)
			mistake.undo(tn)
			tn.awaitReady("platform", "the mistake is undone")
			tn.settle()
			tn.Expect(deletions()).To(BeEmpty(), "nothing was removed")
			for _, s := range servers {
				tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}))
			}

			mistake.make(tn)
			for _, cluster := range clusters {
				tn.awaitCluster(cluster, "it is held once more", heldOn("platform", mistake.cause))
			}
			change(tn, tn.clusterAddon(clusters[0]), func(ca *addonsv1.ClusterAddon) {
				metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, "00000000")
			})
			tn.awaitEvent("ConfirmationIgnored", "00000000")
			tn.awaitCluster(clusters[0], "a confirmation of something else changes nothing", heldOn("platform", mistake.cause))
			tn.confirm(clusters[0], "platform")
			tn.expectRemoved(t, servers[0], "settings")
			tn.awaitCluster(clusters[1], "others aren't confirmed with it", heldOn("platform", mistake.cause))
			for _, cluster := range clusters[1:] {
				tn.confirm(cluster, "platform")
			}
			for i := range clusters {
				tn.expectRemoved(t, servers[i], "settings")
				ca := tn.clusterAddon(clusters[i])
				tn.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca)).To(Succeed())
				tn.Expect(ca.Annotations).NotTo(HaveKey(addonsv1.ConfirmRemovalAnnotation), "a confirmation is for one change")
			}
		})
	}
}

// TestSmallRemovalGoes changes what spec.removalLimit allows.
func TestSmallRemovalGoes(t *testing.T) {
	t.Parallel()
	tn, _, clusters, servers := newProdFleet(t)

	tn.relabel(clusters[0], "env=test")
	tn.expectRemoved(t, servers[0], "settings")
	tn.relabel(clusters[1], "env=test")
	tn.awaitCluster(clusters[1], "the second one within ten minutes is held", heldOn("platform", addonsv1.RemovalNotSelected))
	tn.awaitCluster(clusters[2], "the third one isn't concerned", ready("settings"))

	tn.relabel(clusters[1], "env=prod")
	tn.awaitCluster(clusters[1], "it is selected again", ready("settings"))
	tn.restart()
	tn.relabel(clusters[1], "env=test")
	tn.awaitCluster(clusters[1], "also after a restart", heldOn("platform", addonsv1.RemovalNotSelected))
	tn.relabel(clusters[1], "env=prod")
	limit := intstr.FromString("100%")
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.RemovalLimit = &limit })
	tn.awaitReady("platform", "the limit is lifted")
	tn.remove(tn.newStack("platform", nil))
	for _, s := range servers {
		tn.expectRemoved(t, s, "settings")
	}
}

// TestReplacedStack deletes a stack and makes it again, as `kubectl replace --force` does.
func TestReplacedStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 2)
	path := tn.writeChart("settings", "1.0.0", configMapChart)
	tn.install(tn.addon("settings", path))
	tn.settle()
	deletions := tn.watchDeletions(s)
	for range 5 {
		tn.remove(tn.newStack("platform", nil))
		tn.install(tn.addon("settings", path))
		tn.settle()
	}
	tn.Expect(deletions()).To(BeEmpty())
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}), "and nothing was installed again")

	other := tn.addon("other", path)
	for range 5 {
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, other) })
		tn.awaitCluster("prod", "an add-on that was removed is installed again at once", ready("settings", "other"))
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
		tn.expectRemoved(t, s, "other")
	}
	tn.remove(tn.newStack("platform", nil))
	begin := time.Now()
	tn.expectRemoved(t, s, "settings")
	t.Logf("removed %s after the stack was deleted", time.Since(begin).Round(time.Second))
	for _, note := range tn.warnings() {
		t.Errorf("a Warning without a reason: %s", note)
	}
}
