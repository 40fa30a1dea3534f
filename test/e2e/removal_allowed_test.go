// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
)

// editStack changes a stack, and may fail.
func (tn *tenant) editStack(name string, mutate func(*addonsv1.AddonStackSpec)) error {
	s := tn.newStack(name, nil)
	if err := world.hub.Get(tn.t.Context(), tn.key(name), s); err != nil {
		return err
	}
	mutate(&s.Spec)
	return world.hub.Update(tn.t.Context(), s)
}

// drops takes an add-on off the list.
func drops(name string) func(*addonsv1.AddonStackSpec) {
	return func(spec *addonsv1.AddonStackSpec) {
		spec.Addons = slices.DeleteFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == name })
	}
}

// TestRestOfAnEditIsNotHeld drops one add-on from a fleet, changes another one, and brings a third, all at once. The first
// stays, the second is upgraded. The third may be the first's successor, and waits.
func TestRestOfAnEditIsNotHeld(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, path, clusters, servers := newProdFleet(t)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, tn.addon("other", path)) })
	tn.awaitReady("platform", "it has two add-ons")
	tn.settle()
	deletions := tn.watchDeletionsOn(servers)

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		drops("settings")(spec)
		withValues(map[string]any{"text": "new"})(&spec.Addons[0])
		spec.Addons = append(spec.Addons, tn.addon("third", path))
	})
	for i, cluster := range clusters {
		tn.awaitCluster(cluster, "the removal is held", heldOn("platform", addonsv1.RemovalAddonsDropped))
		tn.awaitCluster(cluster, "the successor waits", phase("third", addonsv1.AddonPending, "WaitingForConfirmation", "platform"))
		tn.awaitCluster(cluster, "the rest is done", phase("other", addonsv1.AddonReady, "", ""))
		await(t, servers[i], tn.configMapOf("other"), patience, "it is upgraded", func(o *corev1.ConfigMap) error {
			if o.Data["text"] != "new" {
				return fmt.Errorf("its text is %q", o.Data["text"])
			}
			return nil
		})
		tn.Expect(servers[i].release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}))
	}
	tn.restart()
	tn.settle()
	tn.awaitCluster(clusters[0], "also after a restart", heldOn("platform", addonsv1.RemovalAddonsDropped))
	tn.Expect(deletions()).To(BeEmpty())

	tn.confirm(clusters[0], "platform")
	tn.expectRemoved(t, servers[0], "settings")
	tn.awaitCluster(clusters[0], "all is done", ready("other", "third"))
	tn.awaitCluster(clusters[1], "others aren't confirmed with it", heldOn("platform", addonsv1.RemovalAddonsDropped))
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"settings"}}
	})
	for _, s := range servers[1:] {
		tn.expectRemoved(t, s, "settings")
	}
	tn.awaitReady("platform", "an edit allowed it")
}

// TestRemovalIsAllowedByTheEdit makes removals that the same edit allows, and then others that it doesn't.
func TestRemovalIsAllowedByTheEdit(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, path, clusters, servers := newProdFleet(t)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = append(spec.Addons, tn.addon("other", path)) })
	tn.awaitReady("platform", "it has two add-ons")

	allow := func(spec *addonsv1.AddonStackSpec) {
		spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"other"}}
	}
	tn.Expect(tn.editStack("platform", allow)).To(MatchError(ContainSubstring("spec.allowedRemovals.addons")), "the stack has it")
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { drops("other")(spec); allow(spec) })
	for _, s := range servers {
		tn.expectRemoved(t, s, "other")
	}
	tn.awaitReady("platform", "it went with the edit")
	tn.Expect(tn.warnings()).To(BeEmpty(), "nothing was held")

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.ClusterSelector.MatchLabels = labels("env=test")
		spec.AllowedRemovals = &addonsv1.AllowedRemovals{ClusterSelector: &metav1.LabelSelector{MatchLabels: labels("env=prod")}}
	})
	for _, s := range servers {
		tn.expectRemoved(t, s, "settings")
	}
	tn.Expect(tn.warnings()).To(BeEmpty(), "nothing was held")

	for _, cluster := range clusters {
		tn.relabel(cluster, "env=test")
	}
	tn.awaitReady("platform", "all have it again")
	for _, cluster := range clusters {
		tn.relabel(cluster, "env=prod")
	}
	tn.awaitCluster(clusters[2], "it was allowed once", heldOn("platform", addonsv1.RemovalNotSelected))
	limit := intstr.FromString("100%")
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.RemovalLimit = &limit })
	for _, s := range servers {
		tn.expectRemoved(t, s, "settings")
	}
}

// TestConfirmationCountsOnce deletes a stack, confirms that, and does the same once more.
func TestConfirmationCountsOnce(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, path, clusters, servers := newProdFleet(t)
	held := func() string {
		confirmations := map[string]bool{}
		for _, cluster := range clusters {
			ca := tn.awaitCluster(cluster, "the removal is held", heldOn("platform", addonsv1.RemovalStackDeleted))
			confirmations[ca.Spec.Stacks[0].HeldRemoval.Confirmation] = true
		}
		tn.Expect(confirmations).To(HaveLen(1), "it is the same for all clusters")
		for confirmation := range confirmations {
			return confirmation
		}
		return ""
	}
	confirmAll := func(confirmations string) {
		for _, cluster := range clusters {
			change(tn, tn.clusterAddon(cluster), func(ca *addonsv1.ClusterAddon) {
				metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, confirmations)
			})
		}
	}
	tn.remove(tn.newStack("platform", nil))
	first := held()
	confirmAll("another, " + first)
	for _, s := range servers {
		tn.expectRemoved(t, s, "settings")
	}
	tn.install(tn.addon("settings", path))
	tn.remove(tn.newStack("platform", nil))
	tn.Expect(held()).NotTo(Equal(first))
	confirmAll(first)
	tn.settle()
	for i, cluster := range clusters {
		tn.awaitCluster(cluster, "that was for another time", heldOn("platform", addonsv1.RemovalStackDeleted))
		tn.Expect(servers[i].release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}))
	}
}

// TestNothingIsHeldOfNothing deletes a stack whose add-on has no object yet, and has a failing add-on beside a removal that is held.
func TestNothingIsHeldOfNothing(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, _, clusters, _ := newProdFleet(t)
	failing := tn.writeChart("hooked", "1.0.0", chart{
		"templates/text.yaml": configMap("text", "x"),
		"templates/hook.yaml": hookJob("pre-install", controlplane.PodFate+": "+controlplane.PodFails),
	})
	for _, name := range []string{"trial", "beside"} {
		addon := tn.addon(name, failing)
		addon.Namespace = fmt.Sprintf("%s-%s", tn.namespace, name)
		addon.CreateNamespace = new(true)
		tn.makeStack(name, labels("env=prod"), addon)
	}
	for _, cluster := range clusters {
		for _, name := range []string{"trial", "beside"} {
			tn.awaitCluster(cluster, "its hook fails", phase(name, addonsv1.AddonFailed, "", "pre-install"))
		}
	}
	tn.restart()
	tn.settle()
	tn.remove(tn.newStack("trial", nil))
	for _, cluster := range clusters {
		tn.awaitCluster(cluster, "it goes unheld", func(ca *addonsv1.ClusterAddon) error {
			if slices.ContainsFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == "trial" }) {
				return fmt.Errorf("%+v", ca.Spec.Stacks)
			}
			return nil
		})
	}
	tn.remove(tn.newStack("platform", nil))
	ca := tn.awaitCluster(clusters[0], "the other one is held", heldOn("platform", addonsv1.RemovalStackDeleted))
	tn.Expect(checkCondition(ca, addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason, "beside: Failed, HookFailed")).To(Succeed())
}
