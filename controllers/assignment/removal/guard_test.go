// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clusterAddon returns the ClusterAddon of a cluster that runs add-on web of a stack.
func clusterAddon(name string, assigned addonsv1.StackRevision) *addonsv1.ClusterAddon {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	ca.Spec.Stacks = []addonsv1.StackRevision{assigned}
	ca.Status.Addons = []addonsv1.AddonStatus{{Stack: assigned.Name, Namespace: "apps", Name: "web", Revision: 1, Objects: &addonsv1.ObjectCounts{Total: 1}}}
	return ca
}

// newGuard returns a guard that sees a ClusterAddon, which has just lost add-ons of stacks a and b, and others of these names: so each
// further loss of these exceeds the limit.
func newGuard(t *testing.T, lost *addonsv1.ClusterAddon, others ...string) *removal.Guard {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, clusterv1.AddToScheme(scheme))
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	removals, err := json.Marshal(map[string]time.Time{"a": now, "b": now})
	must.Succeed(t, err)
	metav1.SetMetaDataAnnotation(&lost.ObjectMeta, addonsv1.LastRemovalsAnnotation, string(removals))
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(lost)
	for _, name := range others {
		objects.WithObjects(clusterAddon(name, addonsv1.StackRevision{}))
	}
	c := objects.Build()
	clock := testingclock.NewFakeClock(now)
	members := &member.Inventory{Client: c, Fleet: fleet.NewProvider(fleet.Options{})}
	return removal.NewGuard(c, members, missing.New(nil, c, clock), clock)
}

// hold returns what is held of a stack on a cluster that is to have a revision of it instead, "" for none. The target is the stack's
// revision in force, "" if the stack is gone.
func hold(t *testing.T, g *removal.Guard, ca *addonsv1.ClusterAddon, target, wanted string) *addonsv1.HeldRemoval {
	t.Helper()
	name := ca.Spec.Stacks[0].Name
	cluster := member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: ca.Name}})
	p := &removal.Plan{Cluster: cluster, ClusterAddon: ca, Stored: ca}
	if target != "" {
		p.Candidates = []candidate.Stack{{Name: name, Revision: target}}
	}
	if wanted != "" {
		p.Wanted = []addonsv1.StackRevision{{Name: name, Revision: wanted}}
	}
	must.Succeed(t, g.Hold(t.Context(), p))
	return stack.Assigned(p.Wanted, name).HeldRemoval
}

// A confirmation is for one change: of one stack, by one cause, to one revision.
func TestChangesDiffer(t *testing.T) {
	a := func(revision string) addonsv1.StackRevision {
		return addonsv1.StackRevision{Name: "a", Revision: revision}
	}
	g := newGuard(t, clusterAddon("lost", a("a-1")), "prod")
	seen := map[string]string{}
	for name, tc := range map[string]struct {
		assigned       addonsv1.StackRevision
		target, wanted string
		cause          addonsv1.RemovalCause
	}{
		"deleted":                 {a("a-1"), "", "", addonsv1.RemovalStackDeleted},
		"deleted at another":      {a("a-2"), "", "", addonsv1.RemovalStackDeleted},
		"another stack":           {addonsv1.StackRevision{Name: "b", Revision: "a-1"}, "", "", addonsv1.RemovalStackDeleted},
		"not selected":            {a("a-1"), "a-1", "", addonsv1.RemovalNotSelected},
		"not selected by an edit": {a("a-1"), "a-2", "", addonsv1.RemovalNotSelected},
		"add-ons dropped":         {a("a-1"), "a-2", "a-2", addonsv1.RemovalAddonsDropped},
	} {
		held := hold(t, g, clusterAddon("prod", tc.assigned), tc.target, tc.wanted)
		if held == nil || held.Cause != tc.cause {
			t.Fatalf("%s: held is %+v", name, held)
		}
		if other, taken := seen[held.Confirmation]; taken {
			t.Errorf("%s is confirmed as %q", name, other)
		}
		seen[held.Confirmation] = name
	}
	held := hold(t, g, clusterAddon("prod", a("a-0")), "a-2", "")
	if seen[held.Confirmation] != "not selected by an edit" {
		t.Error("clusters that one change concerns have several confirmations")
	}
}

func TestConfirmationsAreShared(t *testing.T) {
	assigned := addonsv1.StackRevision{Name: "a", Revision: "a-1"}
	lost := clusterAddon("lost", assigned)
	g := newGuard(t, lost, "prod", "third")
	first := hold(t, g, clusterAddon("prod", assigned), "", "")
	if again := hold(t, g, clusterAddon("third", assigned), "", ""); again.Confirmation != first.Confirmation {
		t.Errorf("a second cluster has %s, not %s", again.Confirmation, first.Confirmation)
	}
	lost.Spec.Stacks[0].HeldRemoval, lost.ResourceVersion = first, ""
	if restarted := hold(t, newGuard(t, lost, "prod"), clusterAddon("prod", assigned), "", ""); restarted.Confirmation != first.Confirmation {
		t.Error("after a restart it is another one")
	}

	confirmed := clusterAddon("prod", addonsv1.StackRevision{Name: "a", Revision: "a-1", HeldRemoval: first})
	metav1.SetMetaDataAnnotation(&confirmed.ObjectMeta, addonsv1.ConfirmRemovalAnnotation, first.Confirmation)
	if held := hold(t, g, confirmed, "", ""); held != nil {
		t.Errorf("it is confirmed, and held: %+v", held)
	}
	next := hold(t, g, clusterAddon("prod", assigned), "", "")
	if next.Confirmation == first.Confirmation {
		t.Error("one that was given is given out once more")
	}
	if change, _, _ := strings.Cut(first.Confirmation, "-"); !strings.HasPrefix(next.Confirmation, change) {
		t.Errorf("the same change is %s, then %s", first.Confirmation, next.Confirmation)
	}
}
