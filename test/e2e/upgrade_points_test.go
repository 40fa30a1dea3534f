// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// atPoint has changes of the add-on delivered at a point of upgrades.
func atPoint(point addonsv1.UpgradePoint) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.Lifecycle = &addonsv1.AddonLifecycle{Upgrade: point} }
}

// runs has a Cluster say which versions of Kubernetes run, as Cluster API does.
func (tn *tenant) runs(c *clusterv1.Cluster, controlPlane, workers []string) {
	tn.t.Helper()
	list := func(versions []string) (all []clusterv1.StatusVersion) {
		for _, v := range versions {
			all = append(all, clusterv1.StatusVersion{Version: v, Replicas: 1})
		}
		return all
	}
	before := c.DeepCopy()
	c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: list(controlPlane)}
	c.Status.Workers = &clusterv1.WorkersStatus{Versions: list(workers)}
	must.Succeed(tn.t, world.hub.Status().Patch(tn.t.Context(), c, client.MergeFrom(before)))
}

// TestUpgradeWithoutTopology has Clusters whose machines are upgraded by somebody who asks nobody. Changes wait for their
// point, and the status says that nothing waits for add-ons. Of a stack that has no say nothing is written.
func TestUpgradeWithoutTopology(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	const previous, next = "v1.35.0", "v1.36.0"
	tn := newTenant(t)
	s, plain := workloadServer(t, 0), workloadServer(t, 1)
	gated, ungated := tn.makeCluster("gated", s, labels("env=gated")), tn.makeCluster("plain", plain, labels("env=plain"))
	tn.startManager()
	withText := func(text string) func(*addonsv1.Addon) { return withValues(map[string]any{"text": text}) }
	tn.makeStack("plain", labels("env=plain"), tn.small("settings"))
	stack := tn.makeStack("gated", labels("env=gated"),
		tn.small("ccm", atPoint(addonsv1.UpgradeAfterControlPlane)),
		tn.small("scaler", atPoint(addonsv1.UpgradeAfterWorkers)), tn.small("free"), tn.small("leaves"))
	for _, c := range []*clusterv1.Cluster{gated, ungated} {
		tn.runs(c, []string{previous}, []string{previous})
	}
	tn.awaitReady("plain", "installed")
	tn.awaitReady("gated", "installed")
	tn.settle()

	onHub, onPlain := world.hub.mark(t), plain.mark(t)
	tn.runs(ungated, []string{previous, next}, []string{previous})
	tn.runs(gated, []string{previous, next}, []string{previous})
	tn.awaitCluster("gated", "the control plane is upgraded", upgrading(previous, next))
	change(tn, stack, func(s *addonsv1.AddonStack) {
		s.Spec.Addons = []addonsv1.Addon{
			tn.small("ccm", atPoint(addonsv1.UpgradeAfterControlPlane), withText("new")),
			tn.small("scaler", atPoint(addonsv1.UpgradeAfterWorkers), withText("new")),
			tn.small("free", withText("new")), tn.small("comes", atPoint(addonsv1.UpgradeAfterControlPlane)),
		}
	})
	tn.awaitCluster("gated", "each has its point", installedAs("free", 2, ""),
		phase("ccm", addonsv1.AddonPending, "WaitingForControlPlane", next), phase("scaler", addonsv1.AddonPending, "WaitingForWorkers", next),
		phase("comes", addonsv1.AddonPending, "WaitingForControlPlane", next), phase("leaves", addonsv1.AddonRemoving, "WaitingForUpgrade", next))
	settings := tn.configMapOf("ccm")
	tn.Expect(s.Delete(t.Context(), settings)).To(Succeed())
	await(t, s, tn.configMapOf("ccm"), patience, "it is repaired as it was", exists)
	tn.restart()
	tn.settle()
	tn.awaitCluster("gated", "after a restart, too", phase("ccm", addonsv1.AddonPending, "WaitingForControlPlane", next),
		phase("comes", addonsv1.AddonPending, "WaitingForControlPlane", next), stillAt("ccm", 1, ""))

	tn.changeAddon("gated", "comes", func(a *addonsv1.Addon) {
		a.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.metadata.annotations['ready'] == 'yes'"}}
	})
	tn.runs(gated, []string{next}, []string{previous})
	tn.awaitCluster("gated", "after the control plane", installedAs("ccm", 2, ""), phase("scaler", addonsv1.AddonPending, "WaitingForWorkers", next),
		func(ca *addonsv1.ClusterAddon) error {
			c := conditions.Get(ca, addonsv1.UpgradeAllowedCondition)
			if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != addonsv1.UpgradeNotAskedReason {
				return fmt.Errorf("allowed is %+v", c)
			}
			return nil
		})
	changeOn(t, s, tn.configMapOf("comes"), func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"ready": "yes"} })
	tn.runs(gated, []string{next}, []string{next})
	tn.awaitCluster("gated", "all is done, and what isn't wanted any more is gone", ready("ccm", "scaler", "free", "comes"), func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.Upgrade != nil || conditions.Has(ca, addonsv1.UpgradeAllowedCondition) {
			return fmt.Errorf("the upgrade is %+v", ca.Status.Upgrade)
		}
		return nil
	})

	tn.settle()
	tn.Expect(writes(onPlain.requests(t, tn.clusterUser("plain")))).To(BeEmpty())
	for _, written := range writes(onHub.requests(t, tn.user)) {
		tn.Expect(written).NotTo(ContainSubstring("clusteraddons/plain"))
	}
}

// upgrading expects an upgrade that is seen.
func upgrading(from, target string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if u := ca.Status.Upgrade; u == nil || u.From != from || u.Target != target {
			return fmt.Errorf("the upgrade is %+v", u)
		}
		return nil
	}
}

// TestWritesWithoutARollout compares the audit logs of an upgrade of a stack that has no rollout with what they were before
// there were any. The add-on takes values from a Secret.
func TestWritesWithoutARollout(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	const clusters = 8
	r := newRolling(t, "plain", clusters)
	r.create(r.secret("inputs", map[string]string{"values.yaml": "text: one"}))
	r.changeStack("platform", fromSecret(nil))
	r.awaitReady("platform", "the same values from a Secret")
	r.settle()
	revision := r.latestRevision("platform")

	kinds := func(events []auditEvent) map[string]int {
		all := map[string]int{}
		for _, e := range events {
			if o := e.ObjectRef; o != nil && audit.Write(&e) && !registers(e) && !strings.Contains(e.RequestURI, "dryRun=") {
				all[strings.TrimSuffix(fmt.Sprint(e.Verb, " ", o.Resource, "/", o.Subresource), "/")]++
			}
		}
		return all
	}
	upgrade := func(edit func(), hub, cluster map[string]int) {
		t.Helper()
		since, workload := world.hub.mark(t), workloadServer(t, 1).mark(t)
		edit()
		r.awaitReady("platform", "it is upgraded")
		r.settle()
		is := kinds(since.requests(t, r.user))
		delete(is, "create events") // as many as phases that are seen
		delete(is, "patch events")
		delete(is, "patch addonstacks/status") // as often as clusters are counted
		delete(is, "patch clusteraddons/status")
		r.Expect(is).To(Equal(hub))
		for name := range r.clients {
			r.Expect(kinds(workload.requests(t, r.clusterUser(name)))).To(Equal(cluster), name)
		}
	}
	onCluster := map[string]int{"create secrets": 1, "patch configmaps": 1, "update secrets": 2}
	upgrade(func() { r.edit("two", "none") }, map[string]int{"create controllerrevisions": 1, "patch clusteraddons": clusters}, onCluster)
	r.changeStack("platform", fromSecret(nil))
	r.awaitReady("platform", "back")
	upgrade(func() { r.setValues("text: three") }, map[string]int{}, onCluster)
	r.Expect(r.latestRevision("platform")).To(Equal(revision), "a Secret's change is no revision")
}
