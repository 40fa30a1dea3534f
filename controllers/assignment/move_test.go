// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// mover makes candidates whose revisions are named by their stack and their age: "src-2" is newer than "src-1".
type mover struct{ *testing.T }

var everywhere = &metav1.LabelSelector{}

// having returns a spec with add-ons.
func having(addons ...string) addonsv1.AddonStackSpec {
	s := addonsv1.AddonStackSpec{ClusterSelector: everywhere}
	for _, name := range addons {
		s.Addons = append(s.Addons, addonsv1.Addon{Name: name, Namespace: "apps", Chart: addonsv1.ChartSource{Path: name}})
	}
	return s
}

// stackOf returns a candidate with these revisions, the newest first. The target is the one of a name. With a rollout, the
// cluster has its turn if that says so.
func (m mover) stackOf(name, target string, revisions ...addonsv1.AddonStackSpec) candidate {
	c := candidate{name: name, revision: target}
	for i, spec := range revisions {
		revision := name + "-" + string(rune('0'+len(revisions)-i))
		c.revisions = append(c.revisions, kept(m.T, revision, spec))
		if revision == target {
			c.spec = spec
		}
	}
	return c
}

// staged gives a candidate a rollout.
func staged(c candidate, turn bool) candidate {
	at := slices.IndexFunc(c.revisions, func(r appsv1.ControllerRevision) bool { return r.Name == c.revision })
	c.steps = &steps{target: at}
	for i, r := range c.revisions {
		c.steps.marked = append(c.steps.marked, rollout.Revision{Name: r.Name, Started: true, Completed: i == min(at+1, len(c.revisions)-1)})
	}
	if turn {
		c.steps.turns = sets.New("prod")
	}
	return c
}

// edited gives a candidate a written spec that isn't in force.
func edited(c candidate, spec addonsv1.AddonStackSpec) candidate {
	c.written = &spec
	return c
}

// TestMoveAddons moves add-on "db" from stack src to stack dst.
func TestMoveAddons(t *testing.T) {
	m := mover{t}
	with, without := having("cni", "db"), having("cni")
	none, db := having("web"), having("web", "db")
	nowhere, bundle := having("web", "db"), having()
	nowhere.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	bundle.Source = &addonsv1.BundleSource{}
	src, dst := m.stackOf("src", "src-2", without, with), m.stackOf("dst", "dst-2", db, none)
	before := m.stackOf("dst", "dst-1", none)
	moved := []string{"apps/db"}
	type entry struct {
		revision string
		moved    []string
	}
	for name, tc := range map[string]struct {
		src, dst         candidate
		srcIs, dstIs     entry // as assigned before
		srcWant, dstWant entry
	}{
		"nobody wants it":                           {src, before, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", nil}, entry{"dst-1", nil}},
		"both change at once":                       {src, dst, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", nil}, entry{"dst-2", nil}},
		"the other one's spec isn't in force":       {src, edited(before, db), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", moved}, entry{"dst-1", nil}},
		"that doesn't select the cluster":           {src, edited(before, nowhere), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", nil}, entry{"dst-1", nil}},
		"the other one's turn comes":                {src, staged(dst, false), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", moved}, entry{"dst-1", nil}},
		"it is awaited still":                       {src, staged(dst, false), entry{"src-2", moved}, entry{"dst-1", nil}, entry{"src-2", moved}, entry{"dst-1", nil}},
		"the other one is there":                    {src, staged(dst, true), entry{"src-2", moved}, entry{"dst-1", nil}, entry{"src-2", nil}, entry{"dst-2", nil}},
		"the other one gave it up":                  {src, edited(before, none), entry{"src-2", moved}, entry{"dst-1", nil}, entry{"src-2", nil}, entry{"dst-1", nil}},
		"the other one was rejected":                {src, staged(m.stackOf("dst", "dst-1", db, none), false), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", moved}, entry{"dst-1", nil}},
		"the other one goes first":                  {staged(src, false), staged(dst, true), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", moved}, entry{"dst-2", nil}},
		"the other one was first, and both are":     {staged(src, true), staged(dst, true), entry{"src-1", moved}, entry{"dst-2", nil}, entry{"src-2", nil}, entry{"dst-2", nil}},
		"both have other turns":                     {staged(src, true), staged(dst, false), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-2", moved}, entry{"dst-1", nil}},
		"neither is written yet":                    {edited(m.stackOf("src", "src-1", with), without), dst, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", moved}, entry{"dst-2", nil}},
		"the written one has a bundle":              {edited(m.stackOf("src", "src-1", with), bundle), dst, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", nil}, entry{"dst-2", nil}},
		"both want it for good":                     {m.stackOf("src", "src-1", with), dst, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", nil}, entry{"dst-2", nil}},
		"the losing one was rejected":               {staged(m.stackOf("src", "src-1", without, with), false), dst, entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", moved}, entry{"dst-2", nil}},
		"it goes back before the other one was":     {staged(src, false), rejected(m.stackOf("dst", "dst-1", db, none)), entry{"src-1", moved}, entry{"dst-2", nil}, entry{"src-1", nil}, entry{"dst-1", moved}},
		"it goes back after the other one was":      {src, rejected(m.stackOf("dst", "dst-1", db, none)), entry{"src-2", nil}, entry{"dst-2", nil}, entry{"src-2", nil}, entry{"dst-1", moved}},
		"neither wants it, and both have it":        {staged(edited(src, without), false), edited(m.stackOf("dst", "dst-1", db), none), entry{"src-1", nil}, entry{"dst-1", nil}, entry{"src-1", nil}, entry{"dst-1", nil}},
		"it goes back without what nobody else had": {m.stackOf("src", "src-1", none), rejected(m.stackOf("dst", "dst-1", db, none)), entry{"src-1", nil}, entry{"dst-2", nil}, entry{"src-1", nil}, entry{"dst-1", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			entryOf := func(name string, e entry) addonsv1.StackRevision {
				return addonsv1.StackRevision{Name: name, Revision: e.revision, MovedAddons: e.moved}
			}
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
			ca.Spec.Stacks = []addonsv1.StackRevision{entryOf("src", tc.srcIs), entryOf("dst", tc.dstIs)}
			want := []addonsv1.StackRevision{entryOf("src", tc.srcWant), entryOf("dst", tc.dstWant)}
			got := assign(member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}), []candidate{tc.src, tc.dst}, ca)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// rejected brings the cluster back to the target, as its newest revision is rejected.
func rejected(c candidate) candidate { return staged(c, true) }

// TestAddonsThatChangePlaces has two stacks give each other an add-on, with rollouts whose turns come one after the other.
// Each add-on has one holder at each time.
func TestAddonsThatChangePlaces(t *testing.T) {
	m := mover{t}
	src, dst := m.stackOf("src", "src-2", having("b"), having("a")), m.stackOf("dst", "dst-2", having("a"), having("b"))
	cluster := member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "src", Revision: "src-1"}, {Name: "dst", Revision: "dst-1"}}
	want := [][]addonsv1.StackRevision{
		{{Name: "src", Revision: "src-2", MovedAddons: []string{"apps/a"}}, {Name: "dst", Revision: "dst-1", MovedAddons: []string{"apps/b"}}},
		{{Name: "src", Revision: "src-2"}, {Name: "dst", Revision: "dst-2"}},
	}
	for i, turns := range []bool{false, true} {
		ca.Spec.Stacks = assign(cluster, []candidate{staged(src, true), staged(dst, turns)}, ca)
		if diff := cmp.Diff(want[i], ca.Spec.Stacks, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("step %d, -want +got:\n%s", i, diff)
		}
	}
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
				h.r.absences = newAbsences(h.clock)
			}
			is := func() string { return stack.AssignedRevision(h.clusterAddon("prod-0").Spec.Stacks, "platform") }
			if again := h.reconcile("prod-0"); again != deletionGrace || is() != "platform-1" {
				t.Errorf("again in %s, at %q", again, is())
			}
			h.clock.Step(deletionGrace / 2)
			if again := h.reconcile("prod-0"); again != deletionGrace/2 || is() != "platform-1" {
				t.Errorf("again in %s, at %q", again, is())
			}
			h.clock.Step(deletionGrace / 2)
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
		is := kept(h.T, revision, other.Spec)
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
	h.clock.Step(deletionGrace)
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
	if again := h.reconcile("prod-0"); again != deletionGrace {
		t.Errorf("again in %s", again)
	}
	h.expectEntry("prod-0", "platform-2", "apps/web")
	h.clock.Step(deletionGrace)
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
	h.clock.Step(deletionGrace)
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
	h.clock.Step(deletionGrace)
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
		is := kept(h.T, name, other.Spec)
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
	h.clock.Step(deletionGrace)
	h.reconcile("prod-0")
	h.reconcile("prod-0")
	if is := h.clusterAddon("prod-0").Spec.Stacks; len(is) != 1 || is[0].Revision != "other-2" {
		t.Errorf("then it has %+v", is)
	}
}

// A stack is awaited that selects the cluster as it is written, also once that revision was rejected.
func TestRejectedStackIsAwaited(t *testing.T) {
	m := mover{t}
	nowhere := having("web")
	nowhere.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	coming := staged(m.stackOf("dst", "dst-1", having("web"), nowhere), false)
	cluster := member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "src", Revision: "src-1"}}
	for range 2 { // before, and when it is assigned
		ca.Spec.Stacks = assign(cluster, []candidate{m.stackOf("src", "src-1", nowhere), coming}, ca)
		if len(ca.Spec.Stacks) != 1 || ca.Spec.Stacks[0].Name != "dst" || ca.Spec.Stacks[0].Revision != "" {
			t.Errorf("%+v", ca.Spec.Stacks)
		}
	}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "dst", Revision: "dst-2"}}
	if got := assign(cluster, []candidate{coming}, ca); len(got) > 0 {
		t.Errorf("a cluster that had it goes back: %+v", got)
	}
}
