// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// TestNewStackIsAssignedOnce has a new stack wait for its first revision, and not for ever.
func TestNewStackIsAssignedOnce(t *testing.T) {
	h := newHub(t, 1, addonsv1.DeletionPolicyDelete)
	late := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "late", UID: "late", Generation: 1, CreationTimestamp: metav1.NewTime(h.clock.Now())}}
	late.Spec = addonsv1.AddonStackSpec{ClusterSelector: h.stack.Spec.ClusterSelector, Addons: []addonsv1.Addon{{Name: "late", Namespace: "apps"}}}
	h.must(h.Create(t.Context(), late))
	again := h.reconcile("prod-0")
	if again <= 0 || again > candidate.FirstRevision {
		t.Errorf("it is looked at again after %s, at most %s", again, candidate.FirstRevision)
	}
	if has := h.clusterAddon("prod-0").Spec.Stacks; stack.Assigned(has, "late").Name != "" || stack.Assigned(has, "platform").Name == "" {
		t.Errorf("the cluster is to run %v, and not the new stack, whose revision comes", has)
	}
	h.clock.Step(candidate.FirstRevision)
	h.reconcile("prod-0")
	if has := h.clusterAddon("prod-0").Spec.Stacks; stack.Assigned(has, "late").Name == "" {
		t.Errorf("no revision came, and the cluster is to run %v, without the new stack", has)
	}
}
