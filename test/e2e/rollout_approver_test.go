// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// as returns a client for somebody who has rules in the tenant's namespace, and nothing else.
func (tn *tenant) as(name string, rules []rbacv1.PolicyRule) client.Client {
	tn.t.Helper()
	name = tn.namespace + "-" + name
	known, err := world.hub.AddUser(name)
	must(tn.t, err)
	world.hub.grant(tn.t, tn.namespace, name, user(name), rules...)
	c, err := client.New(known.Config, client.Options{Scheme: scheme()})
	must(tn.t, err)
	return c
}

// TestRolloutApprover approves a wave and rejects a revision with the role that is shipped for that. Whoever has it can
// edit nothing else, and who may edit AddonStacks can't approve.
func TestRolloutApprover(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
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

	g.Expect(editor.Patch(t.Context(), r.newStack("platform", nil), annotates("example.org/note", "any"))).To(Succeed())
	g.Expect(apierrors.IsForbidden(editor.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutApprovedAnnotation, "canary")))).To(BeTrue(), "an editor can't approve")
	g.Expect(apierrors.IsForbidden(approver.Patch(t.Context(), r.newStack("platform", nil), edits))).To(BeTrue(), "an approver can't edit")
	g.Expect(apierrors.IsForbidden(approver.Patch(t.Context(), r.newStack("platform", nil), annotates("cluster.x-k8s.io/paused", "")))).To(BeTrue())
	g.Expect(apierrors.IsForbidden(approver.List(t.Context(), &corev1.SecretList{}, client.InNamespace(r.namespace)))).To(BeTrue())
	g.Expect(apierrors.IsForbidden(approver.Delete(t.Context(), target.DeepCopy()))).To(BeTrue())
	content := client.RawPatch(types.MergePatchType, []byte(`{"data":{"addons":[]}}`))
	g.Expect(apierrors.IsInvalid(approver.Patch(t.Context(), target.DeepCopy(), content))).To(BeTrue(), "nobody changes the content of a revision")

	g.Expect(approver.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutApprovedAnnotation, "canary"))).To(Succeed())
	r.awaitPhase(addonsv1.RolloutCompleted, 2, "it is approved")
	g.Expect(approver.Patch(t.Context(), target.DeepCopy(), annotates(addonsv1.RolloutRejectedAnnotation, "INC-4711"))).To(Succeed())
	s = r.awaitPhase(addonsv1.RolloutRolledBack, 2, "it is rejected after all")
	g.Expect(approver.Get(t.Context(), client.ObjectKeyFromObject(s), s)).To(Succeed(), "they see how it is")
}
