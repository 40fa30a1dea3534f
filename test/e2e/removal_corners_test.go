// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// longerThanAnAbsence is longer than a stack has to be gone before its add-ons go.
const longerThanAnAbsence = 6 * time.Second

// latestRevision returns the name of the stack's newest revision.
func (tn *tenant) latestRevision(stack string) string {
	tn.t.Helper()
	s := tn.newStack(stack, nil)
	must.Succeed(tn.t, world.hub.Get(tn.t.Context(), tn.key(stack), s))
	return s.Status.LatestRevision
}

// TestRevisionIsDeleted deletes the newest ControllerRevision of a stack. A stack that is paused loses all of them, and gets
// another one with an edit once it isn't.
func TestRevisionIsDeleted(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused %t", paused), func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			clusters, servers := tn.prodClusters()
			tn.startManager()
			tn.install(tn.small("settings", withValues(map[string]any{"text": "one"})))
			tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
				spec.Addons[0].Values = valuesOf(map[string]any{"text": "two"})
				spec.Addons = append(spec.Addons, tn.small("extra"))
			})
			tn.awaitReady("platform", "it has changed")
			if paused {
				tn.pauseStack("platform")
			}
			tn.settle()
			for range 3 {
				deletions, newest := tn.watchDeletionsOn(servers), tn.latestRevision("platform")
				tn.remove(&appsv1.ControllerRevision{ObjectMeta: tn.named(newest)})
				tn.settle()
				tn.Expect(deletions()).To(BeEmpty())
				for i, s := range servers {
					tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{2, "deployed"}), clusters[i])
				}
				tn.Expect(tn.latestRevision("platform")).To(Equal(newest), "an older one isn't in force again")
				if paused {
					tn.awaitCluster(clusters[0], "people are told that nobody knows what the stack wants",
						condition(addonsv1.AddonsReadyCondition, metav1.ConditionFalse, "", "of AddonStack platform is gone"))
					tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
						spec.ClusterSelector, spec.RemovalLimit = &metav1.LabelSelector{MatchLabels: labels("env=none")}, ptr.To(intstr.FromString("100%"))
					})
					for _, revision := range tn.revisionsOf("platform") {
						tn.remove(&revision)
					}
					tn.settle()
					tn.awaitCluster(clusters[0], "it stays as it is", assignedTo("platform", ""))
					tn.Expect(deletions()).To(BeEmpty())
					change(tn, tn.newStack("platform", nil), func(s *addonsv1.AddonStack) {
						s.Annotations, s.Spec.ClusterSelector = nil, &metav1.LabelSelector{MatchLabels: labels("env=prod")}
						s.Spec.Addons[0].Values = valuesOf(map[string]any{"text": "three"})
					})
					tn.awaitReady("platform", "the edit reaches all clusters")
					return
				}
				tn.awaitReady("platform", "the revision is made again")
			}
		})
	}
}

// TestOrphanBeforeTheClusterKnows says that add-ons are to stay, and takes them out of the assignment, while the
// clusters don't answer.
func TestOrphanBeforeTheClusterKnows(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*tenant, string){
		"the stack is deleted":            func(tn *tenant, _ string) { tn.remove(tn.newStack("platform", nil)) },
		"the Cluster isn't selected more": func(tn *tenant, cluster string) { tn.relabel(cluster, "env=none") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			s := workloadServer(t, 0)
			p := tn.startProxy("prod", s)
			tn.makeClusterObject("prod", labels("env=prod"))
			tn.startManager()
			tn.install(tn.small("settings"))
			tn.settle()
			p.refuse()
			tn.awaitCluster("prod", "it doesn't answer", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "", ""))
			tn.changeStack("platform", orphans)
			tn.awaitCluster("prod", "the policy is assigned", assignedWith(addonsv1.DeletionPolicyOrphan))
			take(tn, "prod")
			tn.Consistently(func() []addonsv1.StackRevision {
				ca := tn.clusterAddon("prod")
				tn.Expect(world.hub.Get(t.Context(), tn.key("prod"), ca)).To(Succeed())
				return ca.Spec.Stacks
			}).WithTimeout(longerThanAnAbsence).WithPolling(time.Second).Should(HaveLen(1), "the cluster has to know the policy first")
			tn.restart()
			p.open(t)
			tn.awaitCluster("prod", "now it may go", func(ca *addonsv1.ClusterAddon) error {
				if len(ca.Spec.Stacks) > 0 || len(ca.Status.Addons) > 0 {
					return fmt.Errorf("it has %+v, %+v", ca.Spec.Stacks, ca.Status.Addons)
				}
				return nil
			})
			tn.Expect(s.Get(t.Context(), tn.key("settings"), tn.configMapOf("settings"))).To(Succeed())
		})
	}
}

// TestPresenceIsGuarded has an add-on be there during upgrades alone that was always there.
func TestPresenceIsGuarded(t *testing.T) {
	t.Parallel()
	tn, _, clusters, servers := newProdFleet(t)
	tn.settle()
	deletions := tn.watchDeletionsOn(servers)
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) {
		a.Lifecycle = &addonsv1.AddonLifecycle{Present: addonsv1.PresentDuringUpgrade}
	})
	for _, c := range clusters {
		tn.awaitCluster(c, "it is held", heldOn("platform", addonsv1.RemovalAddonsDropped))
	}
	tn.Expect(deletions()).To(BeEmpty())
	tn.confirm(clusters[0], "platform")
	tn.expectRemoved(t, servers[0], "settings")
}

// TestDependencyOfWhatStays confirms the removal of an add-on on which one depends whose removal is held.
func TestDependencyOfWhatStays(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	clusters, servers := tn.prodClusters()
	tn.startManager()
	tn.makeStack("base", labels("env=prod"), tn.small("net"))
	tn.makeStack("apps", labels("env=prod"), tn.small("web", after("base/net")))
	tn.awaitReady("base", "it is installed")
	tn.awaitReady("apps", "it is installed")
	tn.settle()
	tn.remove(tn.newStack("base", nil))
	tn.remove(tn.newStack("apps", nil))
	for _, c := range clusters {
		tn.awaitCluster(c, "both are held", heldOn("base", addonsv1.RemovalStackDeleted), heldOn("apps", addonsv1.RemovalStackDeleted))
	}
	tn.confirm(clusters[0], "base")
	tn.awaitCluster(clusters[0], "web needs it", phase("net", addonsv1.AddonRemoving, "WaitingForDependent", "apps/web"))
	tn.Expect(servers[0].release(t, tn.namespace, "net")).To(Equal(releaseState{1, "deployed"}))
	tn.confirm(clusters[0], "apps")
	tn.expectRemoved(t, servers[0], "net")
	tn.expectRemoved(t, servers[0], "web")
}

// TestStackOfWhatIsAbsentIsReady has an add-on that is there before upgrades alone.
func TestStackOfWhatIsAbsentIsReady(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.makeCluster("prod", workloadServer(t, 1), labels("env=prod"))
	tn.startManager()
	tn.makeStack("backup", labels("env=prod"), tn.small("backup", func(a *addonsv1.Addon) {
		a.Lifecycle = &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}
	}))
	tn.awaitReady("backup", "nothing is to be done")
	tn.awaitCluster("prod", "it says why", condition(addonsv1.AddonsReadyCondition, metav1.ConditionTrue, addonsv1.AddonsReadyReason, "backup"))
}
