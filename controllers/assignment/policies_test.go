// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// edit changes the stack, without a revision that keeps the change.
func (h *hub) edit(mutate func(*addonsv1.AddonStack)) {
	h.Helper()
	mutate(h.stack)
	h.must(h.Update(h.Context(), h.stack))
}

func orphan(s *addonsv1.AddonStack) { s.Spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan }

func pause(s *addonsv1.AddonStack) {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, clusterv1.PausedAnnotation, "")
}

// pauseCluster pauses the only cluster.
func (h *hub) pauseCluster(is bool) {
	change(h, &clusterv1.Cluster{}, "prod-0", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(is) })
}

// Policies count as they are written, whatever keeps an edit from being in force.
func TestPoliciesCountAsWritten(t *testing.T) {
	want := addonsv1.StackRevision{
		Name: "platform", Revision: "platform-1", RemovalLimit: ptr.To(intstr.FromInt32(7)), DeletionPolicy: addonsv1.DeletionPolicyOrphan,
	}
	for name, with := range map[string]func(h *hub){
		"no revision keeps the edit": func(*hub) {},
		"the cluster is paused":      func(h *hub) { h.pauseCluster(true) },
		"its ClusterAddon is": func(h *hub) {
			change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
				metav1.SetMetaDataAnnotation(&ca.ObjectMeta, clusterv1.PausedAnnotation, "")
			})
		},
		"the newest revision is lost": func(h *hub) { h.edit(func(s *addonsv1.AddonStack) { s.Status.LatestRevision = "platform-2" }) },
		"another edit can't be used": func(h *hub) {
			h.edit(func(s *addonsv1.AddonStack) {
				s.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}
			})
		},
		"the stack is deleted before the cluster is decided on": func(h *hub) {
			h.missing.Note(h.stack)
			h.deleted(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, "")
			h.edit(func(s *addonsv1.AddonStack) { orphan(s); s.Spec.RemovalLimit = want.RemovalLimit })
			with(h)
			h.reconcile("prod-0")
			is := h.clusterAddon("prod-0")
			if diff := cmp.Diff([]addonsv1.StackRevision{want}, is.Spec.Stacks); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if h.reconcile("prod-0"); h.clusterAddon("prod-0").ResourceVersion != is.ResourceVersion {
				t.Error("it is written once more")
			}
		})
	}
}

// A stack that was deleted while its cluster was paused stays until the cluster was told, once it goes on.
func TestPausedClusterIsToldOfOrphan(t *testing.T) {
	h := newHub(t, 1, "")
	h.pauseCluster(true)
	h.edit(orphan)
	h.reconcile("prod-0")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Status.ObservedGeneration = ca.Generation })
	h.deleted(true)
	h.expect("prod-0", "assigned")
	h.pauseCluster(false)
	h.expect("prod-0", "assigned")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: addonsv1.DeletionPolicyOrphan}}
	})
	h.expect("prod-0", "gone")
}

// An edit to Orphan that takes the add-ons away as well is told first.
func TestOrphanOfTheSameEditIsToldFirst(t *testing.T) {
	h := newHub(t, 1, "")
	orphan(h.stack)
	h.newRevision(func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels["env"] = "none" })
	h.expect("prod-0", "assigned")
	if is := h.clusterAddon("prod-0").Spec.Stacks[0]; is.DeletionPolicy != addonsv1.DeletionPolicyOrphan || is.Revision != "platform-1" {
		t.Errorf("got %+v", is)
	}
}

// A paused stack stays as it is assigned, whatever changes, and takes in clusters for later.
func TestPausedStackStays(t *testing.T) {
	for name, do := range map[string]func(h *hub){
		"an edit that was kept before": func(h *hub) { h.newRevision(otherAddon) },
		"a cluster leaves":             func(h *hub) { relabel(h, "prod-0") },
		"both":                         func(h *hub) { h.newRevision(otherAddon); relabel(h, "prod-0") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, "")
			h.edit(pause)
			do(h)
			h.reconcile("prod-0")
			want := []addonsv1.StackRevision{{Name: "platform", Revision: "platform-1", Paused: ptr.To(true)}}
			if diff := cmp.Diff(want, h.clusterAddon("prod-0").Spec.Stacks); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			h.edit(func(s *addonsv1.AddonStack) { s.Annotations = nil })
			h.reconcile("prod-0")
			if diff := cmp.Diff(want, h.clusterAddon("prod-0").Spec.Stacks); diff == "" {
				t.Error("it is resumed, and nothing follows")
			}
		})
	}
}

// What a paused stack has on a cluster that joins is marked.
func TestClusterJoinsPausedStack(t *testing.T) {
	h := newHub(t, 1, "")
	h.edit(pause)
	h.must(h.Delete(t.Context(), h.clusterAddon("prod-0")))
	h.expect("prod-0", "assigned")
	if is := h.clusterAddon("prod-0").Spec.Stacks[0]; !ptr.Deref(is.Paused, false) {
		t.Errorf("got %+v", is)
	}
}

// The removal of a paused stack that is deleted is held, also on one cluster, until somebody confirms it.
func TestDeletedPausedStackIsHeld(t *testing.T) {
	h := newHub(t, 1, "")
	h.edit(pause)
	h.reconcile("prod-0")
	h.deleted(true)
	h.expect("prod-0", "held")
	held := stack.Assigned(h.clusterAddon("prod-0").Spec.Stacks, "platform").HeldRemoval
	if held.Cause != addonsv1.RemovalStackDeleted {
		t.Errorf("got %+v", held)
	}
	h.must(h.Update(h.Context(), h.confirmed("prod-0", held.Confirmation)))
	h.expect("prod-0", "gone")
}

// A paused stack with Orphan that is deleted isn't held: nobody could resume it, so its records are told.
func TestDeletedPausedStackWithOrphan(t *testing.T) {
	h := newHub(t, 1, "")
	h.edit(func(s *addonsv1.AddonStack) { orphan(s); pause(s) })
	h.expect("prod-0", "assigned")
	h.deleted(true)
	h.expect("prod-0", "assigned")
	want := []addonsv1.StackRevision{{Name: "platform", Revision: "platform-1", DeletionPolicy: addonsv1.DeletionPolicyOrphan}}
	if diff := cmp.Diff(want, h.clusterAddon("prod-0").Spec.Stacks); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A removal that is held goes once its stack says Orphan, and the cluster was told: nothing is uninstalled by it.
func TestOrphanEndsHold(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(otherAddon)
	h.expect("prod-0", "held")
	h.edit(orphan)
	h.expect("prod-0", "held")
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", RecordedDeletionPolicy: addonsv1.DeletionPolicyOrphan}}
	})
	h.expect("prod-0", "assigned")
	if is := h.clusterAddon("prod-0").Spec.Stacks[0]; is.Revision != "platform-2" || is.DeletionPolicy != addonsv1.DeletionPolicyOrphan {
		t.Errorf("got %+v", is)
	}
}

// A higher limit lets a removal through that is held, though no revision has it. The same one doesn't.
func TestHigherLimitEndsHold(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels["env"] = "none" })
	for _, name := range h.clusters {
		h.expect(name, "held")
	}
	held := h.clusterAddon("prod-0").Spec.Stacks[0].HeldRemoval
	for _, limit := range []int32{1, 1} { // as by default
		h.edit(func(s *addonsv1.AddonStack) { s.Spec.RemovalLimit = ptr.To(intstr.FromInt32(limit)) })
		h.expect("prod-0", "held")
		if diff := cmp.Diff(held, h.clusterAddon("prod-0").Spec.Stacks[0].HeldRemoval); diff != "" {
			t.Errorf("it is another confirmation: %s", diff)
		}
	}
	h.edit(func(s *addonsv1.AddonStack) {
		s.Generation, s.Spec.RemovalLimit = s.Generation+1, ptr.To(intstr.FromString("100%"))
	})
	for _, name := range h.clusters {
		h.expect(name, "held") // for as long as each edit is waited for
	}
	h.clock.Step(missing.DeletionGrace)
	for _, name := range h.clusters {
		h.expect(name, "gone")
	}
}
