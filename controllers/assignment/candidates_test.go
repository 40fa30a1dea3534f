// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// TestNewStackIsAssignedOnce has a new stack wait for its first revision, and not for ever.
func TestNewStackIsAssignedOnce(t *testing.T) {
	h := newHub(t, 1, addonsv1.DeletionPolicyDelete)
	late := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "late", UID: "late", Generation: 1, CreationTimestamp: metav1.NewTime(h.clock.Now())}}
	late.Spec = addonsv1.AddonStackSpec{ClusterSelector: h.stack.Spec.ClusterSelector, Addons: []addonsv1.Addon{{Name: "late", Namespace: "apps"}}}
	h.must(h.Create(t.Context(), late))
	again := h.reconcile("prod-0")
	if again <= 0 || again > firstRevision {
		t.Errorf("it is looked at again after %s, at most %s", again, firstRevision)
	}
	if has := h.clusterAddon("prod-0").Spec.Stacks; stack.Assigned(has, "late").Name != "" || stack.Assigned(has, "platform").Name == "" {
		t.Errorf("the cluster is to run %v, and not the new stack, whose revision comes", has)
	}
	h.clock.Step(firstRevision)
	h.reconcile("prod-0")
	if has := h.clusterAddon("prod-0").Spec.Stacks; stack.Assigned(has, "late").Name == "" {
		t.Errorf("no revision came, and the cluster is to run %v, without the new stack", has)
	}
}

// TestStacksAreReadOnce reads stacks again when one of them changes, and what a revision keeps once.
func TestStacksAreReadOnce(t *testing.T) {
	h := newHub(t, 1, addonsv1.DeletionPolicyDelete)
	read := func() candidate {
		t.Helper()
		all, _, err := h.r.candidates(t.Context(), team)
		h.must(err)
		if len(all) != 1 {
			t.Fatalf("%d candidates", len(all))
		}
		return all[0]
	}
	first := read()
	isSame := func(c candidate) bool { return &c.spec.Addons[0] == &first.spec.Addons[0] }
	if !isSame(read()) {
		t.Error("an unchanged stack was read again")
	}
	h.must(h.Get(t.Context(), client.ObjectKeyFromObject(h.stack), h.stack))
	h.stack.Annotations = map[string]string{"cluster.x-k8s.io/paused": ""}
	h.stack.Spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	h.must(h.Update(t.Context(), h.stack))
	if c := read(); !c.paused || c.spec.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		t.Errorf("a changed stack is as it was: paused %t, %s", c.paused, c.spec.DeletionPolicy)
	}
	h.stack.Spec.Addons[0].Namespace = "other"
	next := h.revisionOf("platform-2", 2)
	next.UID = "next"
	h.must(h.Create(t.Context(), next))
	if c := read(); isSame(c) || c.revision != "platform-2" || c.spec.Addons[0].Namespace != "other" {
		t.Errorf("a new revision isn't in force: %s, %v", c.revision, c.spec.Addons)
	}
}
