// SPDX-License-Identifier: Apache-2.0

package candidate_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/stacks"
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
func (m mover) stackOf(name, target string, revisions ...addonsv1.AddonStackSpec) candidate.Stack {
	c := candidate.Stack{Name: name, Revision: target}
	for i, spec := range revisions {
		revision := name + "-" + string(rune('0'+len(revisions)-i))
		c.Revisions = append(c.Revisions, stacks.Revision(m.T, revision, spec))
		if revision == target {
			c.Spec = spec
		}
	}
	return c
}

// staged gives a candidate a rollout.
func staged(c candidate.Stack, turn bool) candidate.Stack {
	at := slices.IndexFunc(c.Revisions, func(r appsv1.ControllerRevision) bool { return r.Name == c.Revision })
	c.Steps = &candidate.Steps{Target: at}
	for i, r := range c.Revisions {
		c.Steps.Marked = append(c.Steps.Marked, rollout.Revision{Name: r.Name, Started: true, Completed: i == min(at+1, len(c.Revisions)-1)})
	}
	if turn {
		c.Steps.Turns = sets.New("prod")
	}
	return c
}

// edited gives a candidate a written spec that isn't in force.
func edited(c candidate.Stack, spec addonsv1.AddonStackSpec) candidate.Stack {
	c.Written = &spec
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
		src, dst         candidate.Stack
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
			got := candidate.Assign(member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}), []candidate.Stack{tc.src, tc.dst}, ca)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// rejected brings the cluster back to the target, as its newest revision is rejected.
func rejected(c candidate.Stack) candidate.Stack { return staged(c, true) }

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
		ca.Spec.Stacks = candidate.Assign(cluster, []candidate.Stack{staged(src, true), staged(dst, turns)}, ca)
		if diff := cmp.Diff(want[i], ca.Spec.Stacks, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("step %d, -want +got:\n%s", i, diff)
		}
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
		ca.Spec.Stacks = candidate.Assign(cluster, []candidate.Stack{m.stackOf("src", "src-1", nowhere), coming}, ca)
		if len(ca.Spec.Stacks) != 1 || ca.Spec.Stacks[0].Name != "dst" || ca.Spec.Stacks[0].Revision != "" {
			t.Errorf("%+v", ca.Spec.Stacks)
		}
	}
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "dst", Revision: "dst-2"}}
	if got := candidate.Assign(cluster, []candidate.Stack{coming}, ca); len(got) > 0 {
		t.Errorf("a cluster that had it goes back: %+v", got)
	}
}
