// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// heldChart has one ConfigMap, whose deletion takes until somebody lets it go.
var heldChart = chart{
	"templates/held.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}', finalizers: [e2e.chandler.test/held]}\n",
}

// TestSwitchOfClass moves a cluster from one stack to another that has the same
// add-ons, one of them changed, and then away from both.
func TestSwitchOfClass(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	base, top := tn.writeChart("settings", "1.0.0", configMapChart), tn.writeChart("held", "1.0.0", heldChart)
	for _, class := range []string{"a", "b"} {
		tn.create(tn.stackForClass(class, class,
			tn.addon("base", base, withTemplate("text: "+class+" on {{ .Cluster.spec.topology.classRef.name }}")),
			tn.addon("top", top, after("base"))))
	}
	tn.makeCluster("prod", s, nil, ofClass("a"))
	tn.startManager()
	tn.awaitCluster("prod", "it is of class a", ready("base", "top"))
	expectText := func(t *testing.T, text string) {
		t.Helper()
		NewWithT(t).Expect(s.textIn(t, tn.namespace, "base")).To(Equal(text))
	}
	expectText(t, "a on a")

	tn.run("what is assigned waits for its class", func(t *testing.T, tn *tenant) {
		thaw := tn.freezeAssignments()
		unready := tn.watchReady()
		start := s.mark(t)
		before := tn.reconciled("clusteraddon")
		tn.switchClass("prod", "b")
		tn.awaitReconcile("clusteraddon", before)
		ca := tn.clusterAddon("prod")
		tn.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca)).To(Succeed())
		tn.Expect(ready("base", "top")(ca)).To(Succeed(), "the assignment may follow at any moment")
		tn.Expect(unready()).To(BeEmpty())
		tn.awaitCluster("prod", "but it doesn't",
			phase("base", addonsv1.AddonUnassigned, "StackUndecided", "AddonStack a"),
			phase("top", addonsv1.AddonUnassigned, "StackUndecided", "doesn't select Cluster prod any more"),
			condition(addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.AddonsProgressingReason, "AddonStack a doesn't select Cluster prod any more"))
		tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "templates of one class aren't rendered with another one")

		thaw()
		tn.awaitCluster("prod", "the assignment follows", ready("base", "top"), installedAs("base", 2, ""), installedAs("top", 1, ""))
		expectText(t, "b on b")
		tn.awaitEvent("AddonReady", "Upgraded add-on base 1.0.0 in namespace "+tn.namespace+" (release revision 2)")
		told := strings.Join(tn.notesThatBegin("AddonReady", ""), "; ")
		tn.Expect(strings.Count(told, "Installed add-on top ")).To(Equal(1), "it was installed once")
		tn.Expect(told).NotTo(ContainSubstring("Upgraded add-on top "), "nothing was done for it now")
	})

	tn.run("dependencies count in the stack that an add-on is of now", func(t *testing.T, tn *tenant) {
		for _, name := range []string{"base", "top"} {
			records := &corev1.SecretList{}
			NewWithT(t).Expect(s.List(t.Context(), records, client.InNamespace(tn.namespace), client.MatchingLabels{"owner": "helm", "name": name, "status": "deployed"})).To(Succeed())
			NewWithT(t).Expect(records.Items).To(HaveExactElements(HaveField("ObjectMeta.Labels", HaveKeyWithValue(addonsv1.StackNameLabel, "b"))))
		}
		tn.switchClass("prod", "none")
		tn.awaitCluster("prod", "what others depend on goes last",
			phase("top", addonsv1.AddonRemoving, "", ""),
			phase("base", addonsv1.AddonRemoving, "WaitingForDependent", "top"))
		held := &corev1.ConfigMap{ObjectMeta: tn.named("top")}
		changeOn(t, s, held, func(c *corev1.ConfigMap) { c.Finalizers = nil })
		tn.awaitCluster("prod", "all is gone", ready())
	})
}

// TestSwitchOfRegistry gets the same chart from another registry, and then both are gone.
func TestSwitchOfRegistry(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	var servers []*registry.Registry
	for range 2 {
		server := registryOf(t, registry.Options{PlainHTTP: true}, "1.0.0")
		servers = append(servers, server)
	}
	at := func(server *registry.Registry) func(*addonsv1.Addon) {
		return fromOCI(server.URL("charts/settings"), "1.0.0", plainHTTP)
	}
	tn.makeCluster("prod", s, nil)
	tn.makeStack("platform", nil, tn.addon("settings", "", at(servers[0])))
	tn.startManager()
	tn.awaitReady("platform", "it is installed")
	tn.changeAddon("platform", "settings", at(servers[1]))
	tn.awaitReady("platform", "it is the same")
	tn.settle()
	unready := tn.watchReady()
	start := s.mark(t)
	tn.stopManager()
	for _, server := range servers {
		server.Stop()
	}
	tn.startManager()
	tn.poke("prod", "restarted")
	tn.awaitReconcile("clusteraddon", 0)
	tn.settle()
	tn.awaitCluster("prod", "nothing changed", ready("settings"), installedAs("settings", 1, "1.0.0"))
	tn.Expect(unready()).To(BeEmpty())
	tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty())
}

// freezeAssignments makes the API server refuse changes of what ClusterAddons are to
// run, until the function that it returns is called.
func (tn *tenant) freezeAssignments() (thaw func()) {
	tn.t.Helper()
	of := admissionv1.Rule{APIGroups: []string{addonsv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"clusteraddons"}}
	binding := world.hub.evaluate(tn.t, tn.namespace, tn.namespace, of, admissionv1.Deny, admissionv1.Validation{
		Expression: "request.operation == 'CREATE' || object.spec == oldObject.spec", Message: "assignments are frozen",
	})
	tn.t.Cleanup(func() { tn.remove(binding) })
	await := func(reason string, frozen bool) {
		tn.t.Helper()
		poll(tn.t, 30*time.Second, reason, func() error {
			ca := &addonsv1.ClusterAddonList{}
			if err := world.hub.List(tn.t.Context(), ca, client.InNamespace(tn.namespace)); err != nil {
				return err
			}
			other := &ca.Items[0]
			other.Spec.Stacks = append(other.Spec.Stacks, addonsv1.StackRevision{Name: "other"})
			if err := world.hub.Update(tn.t.Context(), other, client.DryRunAll); (err != nil && strings.Contains(err.Error(), "are frozen")) != frozen {
				return fmt.Errorf("a change of an assignment: %w", err)
			}
			return nil
		})
	}
	await("assignments are to be frozen", true)
	return func() {
		tn.t.Helper()
		tn.remove(binding)
		await("assignments are to be free", false)
		change(tn, newCluster(tn.namespace, "prod", nil), func(c *clusterv1.Cluster) {
			c.Annotations = labels("e2e.chandler.test/poked=thawed") // or it is tried again later
		})
	}
}

// TestClassAndVersionAtOnce has somebody set another class and another version of Kubernetes in one write. Cluster API may
// ask before the stack of that class is assigned, and the control plane is not to go on before its network.
func TestClassAndVersionAtOnce(t *testing.T) {
	t.Parallel()
	const before, after = "v1.31.6", "v1.31.7"
	tn := newTenant(t)
	s := workloadServer(t, 1)
	for _, class := range []string{"a", "b"} {
		tn.create(tn.stackForClass(class, class, tn.small("cni", atPoint(addonsv1.UpgradeBeforeControlPlane), withValues(map[string]any{"text": class}))))
	}
	cluster := tn.makeCluster("prod", s, nil, ofClass("a"))
	tn.startManager()
	tn.runs(cluster, []string{before}, []string{before})
	tn.awaitCluster("prod", "it is of class a", ready("cni"))

	gate := func(state addonsv1.GateState, reason string) clusterCheck {
		return func(ca *addonsv1.ClusterAddon) error {
			got := upgrade.GateOf(ca.Status.Upgrade, addonsv1.UpgradeBeforeControlPlane, after)
			if got == nil || got.State != state || got.Reason != reason {
				return fmt.Errorf("the gate is %+v", got)
			}
			return nil
		}
	}
	thaw := tn.freezeAssignments()
	change(tn, newCluster(tn.namespace, "prod", nil), func(c *clusterv1.Cluster) {
		ofClass("b")(c)
		c.Spec.Topology.Version = after
	})
	tn.awaitCluster("prod", "the upgrade is seen", upgrading(before, after))
	ca := tn.clusterAddon("prod")
	tn.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca)).To(Succeed())
	tn.Expect(gate(addonsv1.GateWaiting, addonsv1.UpgradeStackUndecidedReason)(ca)).To(Succeed())
	thaw()
	tn.awaitCluster("prod", "the network is b's", installedAs("cni", 2, ""), gate(addonsv1.GateOpen, addonsv1.UpgradeAllowedReason))
}
