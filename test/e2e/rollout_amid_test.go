// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestRolloutAmidAnUpgrade rolls an edit out while the Kubernetes of one cluster is upgraded. Its add-on waits for a point
// of the upgrade, so the cluster holds no slot, and the rollout ends without it. It catches up after that. A stack whose
// first turn hasn't come there holds no upgrade.
func TestRolloutAmidAnUpgrade(t *testing.T) {
	t.Parallel()
	const previous, next = "v1.35.0", "v1.36.0"
	g := NewWithT(t)
	r := &rolling{tenant: newTenant(t), name: "amid"}
	r.path = r.writeChart("settings", "1.0.0", rollingChart)
	clusters := map[string]*clusterv1.Cluster{}
	for i := range 2 {
		name := fmt.Sprint("amid-", i)
		clusters[name] = r.makeCluster(name, workloadServer(t, i), labels("env=prod"))
	}
	r.startManager()
	r.makeStack("platform", labels("env=prod"), r.addon("settings", r.path, atPoint(addonsv1.UpgradeAfterControlPlane), func(a *addonsv1.Addon) {
		a.ValuesTemplate = valuesFor("one", "none")
	}))
	for _, c := range clusters {
		r.runs(c, []string{previous}, []string{previous})
	}
	r.awaitReady("platform", "installed")
	upgraded, other := "amid-0", "amid-1"
	r.runs(clusters[upgraded], []string{previous, next}, []string{previous})
	r.awaitCluster(upgraded, "its control plane is upgraded", upgrading(previous, next))

	late := r.newStack("late", labels("env=prod"), r.addon("late", r.path, atPoint(addonsv1.UpgradeAfterControlPlane)))
	late.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{
		{Name: "all", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired},
	}}
	r.create(late)
	r.awaitStack("late", "nobody approved it", addonsv1.RolledOutCondition, metav1.ConditionFalse, string(addonsv1.RolloutWaitingForApproval), "")

	r.edit("two", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(1)}))
	s := r.awaitPhase(addonsv1.RolloutCompleted, 2, "nothing waits for the upgrade")
	done, away := int32(0), int32(0)
	for _, wave := range s.Status.Rollout.Waves { // two, or one as soon as the revision is completed
		done, away = done+wave.Done, away+wave.Away
	}
	g.Expect([]int32{done, away}).To(Equal([]int32{1, 1}))
	g.Expect(conditions.GetMessage(s, addonsv1.RolledOutCondition)).To(ContainSubstring(upgraded))
	r.awaitCluster(other, "it has the edit", installedAs("settings", 2, ""))
	ca := r.awaitCluster(upgraded, "its change waits", phase("settings", addonsv1.AddonPending, "WaitingForControlPlane", next))
	g.Expect(ca.Spec.Stacks).To(HaveLen(1), "the other stack's turn hasn't come")
	if ca.Status.Upgrade != nil {
		for _, gate := range ca.Status.Upgrade.Gates {
			g.Expect(gate.Message).NotTo(ContainSubstring("late"))
		}
	}

	r.runs(clusters[upgraded], []string{next}, []string{next})
	r.awaitCluster(upgraded, "it catches up", installedAs("settings", 2, ""))
	r.awaitReady("platform", "all have it")
}

// TestRolloutAmidAMove has a fleet come to another management cluster while a wave waits for approval: without statuses and
// revisions. The newest revision is made again, and the rollout waits there, too. Nothing is installed or removed.
func TestRolloutAmidAMove(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "move", 3)
	before := r.latestRevision("platform")
	r.edit("two", "none", rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), Waves: []addonsv1.RolloutWave{
		{Name: "canary", Size: ofNumber(1)}, {Name: "late", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired},
	}}))
	target := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has it").Status.Rollout.Revision
	canary, others := r.at(target), r.at(before)
	r.settle()
	r.stopManager()
	b := r.backUp(false)
	r.loseAll(b)
	workload := workloadServer(t, 1).mark(t)
	for _, obj := range b.objects {
		if _, isRevision := obj.(*appsv1.ControllerRevision); !isRevision {
			r.restore(obj, false)
		}
	}
	for _, name := range append(canary, others...) {
		r.setInitialized(change(r.tenant, newCluster(r.namespace, name, nil), func(*clusterv1.Cluster) {}), true)
	}
	r.startManager()
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has it, and nobody approved the others")
	r.Expect(s.Status.Rollout.Revision).To(Equal(target), "the same revision is made")
	r.Expect(r.at(target)).To(Equal(canary))
	r.settle()
	r.awaitTextOn(canary, "two", "as it was")
	r.awaitTextOn(others, "one", "as it was")
	for _, name := range append(canary, others...) {
		for _, written := range writes(workload.requests(t, r.clusterUser(name))) {
			r.Expect(written).NotTo(ContainSubstring("configmaps"), name)
		}
	}
	r.annotateRevision(target, addonsv1.RolloutApprovedAnnotation, "late")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "it is approved here")
	r.awaitTextOn(others, "two", "all have it")
}

// as returns a client for somebody who has rules in the tenant's namespace, and nothing else.
func (tn *tenant) as(name string, rules []rbacv1.PolicyRule) client.Client {
	tn.t.Helper()
	name = tn.namespace + "-" + name
	known, err := world.hub.AddUser(name)
	must.Succeed(tn.t, err)
	world.hub.grant(tn.t, tn.namespace, name, user(name), rules...)
	c, err := client.New(known.Config, client.Options{Scheme: scheme()})
	must.Succeed(tn.t, err)
	return c
}

// TestRolloutApprover approves a wave and rejects a revision with the role that is shipped for that. Whoever has it can
// edit nothing else, and who may edit AddonStacks can't approve.
func TestRolloutApprover(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "approve", 2)
	approver, editor := r.as("approver", shippedRole(t, "people/rollout_approver_role.yaml").Rules), r.as("editor", shippedRole(t, "people/editor_role.yaml").Rules)
	r.edit("two", "none", rollsOut(addonsv1.Rollout{OnFailure: addonsv1.RolloutRollBack, Waves: []addonsv1.RolloutWave{
		{Name: "canary", Size: ofNumber(1), Approval: addonsv1.RolloutApprovalRequired},
	}}))
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "the canary is to be approved")
	target := &appsv1.ControllerRevision{ObjectMeta: r.named(s.Status.Rollout.Revision)}
	annotates := func(annotation, value string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation+`":"`+value+`"}}}`))
	}
	edits := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":null}}`))

	r.Expect(editor.Patch(t.Context(), r.newStack("platform", nil), annotates("example.org/note", "any"))).To(Succeed())
	r.Expect(apierrors.IsForbidden(editor.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutApprovedAnnotation, "canary")))).To(BeTrue(), "an editor can't approve")
	r.Expect(apierrors.IsForbidden(approver.Patch(t.Context(), r.newStack("platform", nil), edits))).To(BeTrue(), "an approver can't edit")
	r.Expect(apierrors.IsForbidden(approver.Patch(t.Context(), r.newStack("platform", nil), annotates("cluster.x-k8s.io/paused", "")))).To(BeTrue())
	r.Expect(apierrors.IsForbidden(approver.List(t.Context(), &corev1.SecretList{}, client.InNamespace(r.namespace)))).To(BeTrue())
	r.Expect(apierrors.IsForbidden(approver.Delete(t.Context(), target.DeepCopy()))).To(BeTrue())
	content := client.RawPatch(types.MergePatchType, []byte(`{"data":{"addons":[]}}`))
	r.Expect(apierrors.IsInvalid(approver.Patch(t.Context(), target.DeepCopy(), content))).To(BeTrue(), "nobody changes the content of a revision")

	r.Expect(approver.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutApprovedAnnotation, "canary"))).To(Succeed())
	r.awaitPhase(addonsv1.RolloutCompleted, 2, "it is approved")
	r.Expect(approver.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutRejectedAnnotation, "INC-4711"))).To(Succeed())
	s = r.awaitPhase(addonsv1.RolloutRolledBack, 2, "it is rejected after all")
	r.Expect(approver.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed(), "they see how it is")
}
