// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// having returns a spec with add-ons.
func having(addons ...string) addonsv1.AddonStackSpec {
	s := addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}}
	for _, name := range addons {
		s.Addons = append(s.Addons, addonsv1.Addon{Name: name, Namespace: "apps", Chart: addonsv1.ChartSource{Path: name}})
	}
	return s
}

// A removal waits for the request that may give the add-ons to another stack, and is looked at once more when it doesn't.
func TestRemovalsAwaitTheNextRequest(t *testing.T) {
	for name, mutate := range map[string]func(*addonsv1.AddonStackSpec){
		"an add-on is dropped":       otherAddon,
		"the cluster isn't selected": func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels["env"] = "none" },
		"an add-on is there no more": func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:0] },
		"it isn't in the status yet": otherAddon,
		"its removal is allowed": func(spec *addonsv1.AddonStackSpec) {
			otherAddon(spec)
			spec.AllowedRemovals = &addonsv1.AllowedRemovals{Addons: []string{"web"}}
		},
		"its stack leaves it behind": func(spec *addonsv1.AddonStackSpec) {
			otherAddon(spec)
			spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan
		},
		"the process begins with it":  otherAddon,
		"its stack came back to that": otherAddon,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, "")
			mutate(&h.stack.Spec)
			h.must(h.Update(h.Context(), h.stack))
			h.must(h.Create(h.Context(), h.revisionOf("platform-2", 2)))
			switch name {
			case "it isn't in the status yet":
				change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Status.Addons = nil })
			case "the process begins with it":
				h.clock.Step(time.Hour)
				h.restart()
			}
			is := func() string { return stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "platform") }
			if again := h.reconcile("prod-0"); again != missing.DeletionGrace || is() != "platform-1" {
				t.Errorf("again in %s, at %q", again, is())
			}
			h.clock.Step(missing.DeletionGrace / 2)
			if again := h.reconcile("prod-0"); again != missing.DeletionGrace/2 || is() != "platform-1" {
				t.Errorf("again in %s, at %q", again, is())
			}
			h.clock.Step(missing.DeletionGrace / 2)
			if name == "its stack leaves it behind" {
				change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
					ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-1", RecordedDeletionPolicy: addonsv1.DeletionPolicyOrphan}}
				})
			}
			h.reconcile("prod-0")
			if is() == "platform-1" {
				t.Error("it waits for ever")
			}
		})
	}
}

// otherStack makes a stack "other" that is written with add-on web, and kept as a revision if that has a name.
func (h *hub) otherStack(revision string) *addonsv1.AddonStack {
	h.Helper()
	other := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "other", UID: "other", Generation: 1}, Spec: having("web")}
	h.must(h.Create(h.Context(), other))
	if revision != "" {
		is := stacks.Revision(h.T, revision, other.Spec)
		is.Namespace, is.Labels, is.Revision = team, map[string]string{addonsv1.StackNameLabel: "other"}, 1
		is.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, addonsv1.GroupVersion.WithKind("AddonStack"))}
		h.must(h.Create(h.Context(), &is))
	}
	return other
}

// expectEntry reconciles a cluster, and expects an entry of the stack.
func (h *hub) expectEntry(name, revision string, moved ...string) addonsv1.StackRevision {
	h.Helper()
	h.reconcile(name)
	is := stack.Assigned(h.clusterAddon(name).Spec.Stacks, "platform")
	if is.Name == "" || is.Revision != revision || !slices.Equal(is.MovedAddons, moved) {
		h.Errorf("%s has %+v, want %s, %q", name, is, revision, moved)
	}
	return is
}

// A cluster that is relabelled for another stack just after the process began has both for a moment: the add-on is the other
// stack's at once.
func TestSwitchGivesAddonsAtOnce(t *testing.T) {
	h := newHub(t, 1, "")
	change(h, &appsv1.ControllerRevision{}, "platform-1", func(r *appsv1.ControllerRevision) { stack.SetGeneration(r, h.stack.Generation) })
	change(h, &clusterv1.Cluster{}, "prod-0", func(c *clusterv1.Cluster) { c.Labels["env"] = "test" })
	h.otherStack("other-1")
	h.expectEntry("prod-0", "platform-1", "apps/web")
	if is := stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "other"); is != "other-1" {
		t.Errorf("the other stack has %q", is)
	}
	h.clock.Step(missing.DeletionGrace)
	h.reconcile("prod-0")
	if is := stack.Assigned(h.clusterAddon("prod-0").Spec.Stacks, "platform"); is.Name != "" {
		t.Errorf("it stays: %+v", is)
	}
}

// What stays for another stack waits for the next request, too, when that stack drops it. It is counted when it goes after all.
func TestMovedAddonsThatNobodyBrings(t *testing.T) {
	h := newHub(t, 3, "")
	other := h.otherStack("")
	h.newRevision(otherAddon)
	for _, name := range h.clusters {
		h.expectEntry(name, "platform-2", "apps/web")
	}
	h.clock.Step(time.Hour)
	h.expectEntry("prod-0", "platform-2", "apps/web")
	other.Spec.Addons, other.Generation = nil, 2
	h.must(h.Update(t.Context(), other))
	if again := h.reconcile("prod-0"); again != missing.DeletionGrace {
		t.Errorf("again in %s", again)
	}
	h.expectEntry("prod-0", "platform-2", "apps/web")
	h.clock.Step(missing.DeletionGrace)
	if is := h.expectEntry("prod-0", "platform-2"); is.HeldRemoval == nil || !slices.Equal(is.HeldRemoval.Addons, []string{"apps/web"}) {
		t.Errorf("%+v", is.HeldRemoval)
	}
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		late := ca.Status.Addons[0]
		late.Name = "late"
		ca.Status.Addons = append(ca.Status.Addons, late)
		ca.Spec.Stacks[stackAt(ca)].MovedAddons = []string{"apps/late"}
	})
	if is := h.expectEntry("prod-0", "platform-2"); is.HeldRemoval == nil || !slices.Equal(is.HeldRemoval.Addons, []string{"apps/late", "apps/web"}) {
		t.Errorf("it was never let go: %+v", is.HeldRemoval)
	}
}

func stackAt(ca *addonsv1.ClusterAddon) int {
	return slices.IndexFunc(ca.Spec.Stacks, func(s addonsv1.StackRevision) bool { return s.Name == "platform" })
}

// A confirmation counts at once, also after a restart.
func TestConfirmedRemovalsWaitForNothing(t *testing.T) {
	h := newHub(t, 3, "")
	h.newRevision(otherAddon)
	h.expect("prod-0", "held")
	h.restart()
	h.must(h.Update(t.Context(), h.confirmed("prod-0", h.clusterAddon("prod-0").Spec.Stacks[0].HeldRemoval.Confirmation)))
	if is := h.expectEntry("prod-0", "platform-2"); is.HeldRemoval != nil {
		t.Errorf("%+v", is.HeldRemoval)
	}
}

// While a stack stays for the next request, another one that is there has the add-ons that both have.
func TestAddonsMoveMeanwhile(t *testing.T) {
	h := newHub(t, 1, "")
	h.stack.Spec.ClusterSelector.MatchLabels["env"] = "none"
	h.must(h.Update(t.Context(), h.stack))
	h.must(h.Create(t.Context(), h.revisionOf("platform-2", 2)))
	h.otherStack("other-1")
	h.expectEntry("prod-0", "platform-1", "apps/web")
	h.clock.Step(missing.DeletionGrace)
	h.expect("prod-0", "gone")
}

// A stack that was awaited, and isn't to come any more, stays for the next request, too: it keeps what others left.
func TestAwaitedStacksGoLate(t *testing.T) {
	h := newHub(t, 1, "")
	h.stack.Spec.ClusterSelector.MatchLabels["env"] = "none"
	h.must(h.Update(t.Context(), h.stack))
	h.must(h.Create(t.Context(), h.revisionOf("platform-2", 2)))
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Spec.Stacks, ca.Status.Addons[0].Stack = []addonsv1.StackRevision{{Name: "platform"}}, "left"
	})
	h.expect("prod-0", "assigned")
	h.clock.Step(missing.DeletionGrace)
	h.expect("prod-0", "gone")

	h = newHub(t, 1, "")
	h.stack.Spec.ClusterSelector.MatchLabels["env"] = "none"
	h.must(h.Update(t.Context(), h.stack))
	h.must(h.Create(t.Context(), h.revisionOf("platform-2", 2)))
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Spec.Stacks, ca.Status.Addons = []addonsv1.StackRevision{{Name: "platform"}}, nil
	})
	h.expect("prod-0", "gone") // nothing was left for it
}

// A stack that takes over an add-on of one that is gone, and drops another add-on with the same edit, comes late. Until then the
// stack that is gone keeps the add-on.
func TestSuccessorThatComesLate(t *testing.T) {
	h := newHub(t, 1, "")
	other := h.otherStack("")
	other.Spec = having("old")
	keep := func(name string, number int64) {
		is := stacks.Revision(h.T, name, other.Spec)
		is.Namespace, is.Labels, is.Revision = team, map[string]string{addonsv1.StackNameLabel: "other"}, number
		is.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, addonsv1.GroupVersion.WithKind("AddonStack"))}
		stack.SetGeneration(&is, other.Generation)
		h.must(h.Create(t.Context(), &is))
	}
	h.must(h.Update(t.Context(), other))
	keep("other-1", 1)
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Spec.Stacks = append([]addonsv1.StackRevision{{Name: "other", Revision: "other-1"}}, ca.Spec.Stacks...)
		old := ca.Status.Addons[0]
		old.Stack, old.Name = "other", "old"
		ca.Status.Addons = append(ca.Status.Addons, old)
	})
	h.deleted(true)
	other.Spec, other.Generation = having("web"), 2
	h.must(h.Update(t.Context(), other))
	keep("other-2", 2)
	for range 2 {
		h.expectEntry("prod-0", "platform-1")
		if is := stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "other"); is != "other-1" {
			t.Errorf("the other stack has %q", is)
		}
	}
	h.clock.Step(missing.DeletionGrace)
	h.reconcile("prod-0")
	h.reconcile("prod-0")
	if is := h.clusterAddon("prod-0").Spec.Stacks; len(is) != 1 || is[0].Revision != "other-2" {
		t.Errorf("then it has %+v", is)
	}
}
