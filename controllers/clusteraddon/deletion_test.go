// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
)

func TestRemovesBeforeDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Cluster, *addonsv1.ClusterAddon)
		want   bool
	}{
		"so":               {change: func(*clusterv1.Cluster, *addonsv1.ClusterAddon) {}, want: true},
		"not deleted":      {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.DeletionTimestamp = nil }},
		"paused":           {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Spec.Paused = ptr.To(true) }},
		"without topology": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Spec.Topology = clusterv1.Topology{} }},
		"not initialized":  {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) { c.Status = clusterv1.ClusterStatus{} }},
		"it moves": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) {
			c.Annotations = map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
		}},
		"it continues already": {change: func(c *clusterv1.Cluster, _ *addonsv1.ClusterAddon) {
			c.Annotations = map[string]string{"runtime.cluster.x-k8s.io/ok-to-delete": ""}
		}},
		"paused ClusterAddon": {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) {
			ca.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}},
		"deleted ClusterAddon": {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) { ca.DeletionTimestamp = ptr.To(metav1.Now()) }},
		"nothing goes":         {change: func(_ *clusterv1.Cluster, ca *addonsv1.ClusterAddon) { ca.Status.GatesDeletion = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, ca := &clusterv1.Cluster{}, &addonsv1.ClusterAddon{}
			cluster.DeletionTimestamp, cluster.Spec.Topology.ClassRef.Name = ptr.To(metav1.Now()), "local"
			cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			ca.Status.GatesDeletion = ptr.To(true)
			tc.change(cluster, ca)
			if got := removesBeforeDeletion(ca, member.OfCluster(cluster)); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
	ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{GatesDeletion: ptr.To(true)}}
	if removesBeforeDeletion(ca, nil) || removesBeforeDeletion(ca, &member.Member{Deleting: true, Initialized: true}) {
		t.Error("of no cluster, or of one that isn't of Cluster API")
	}
}

// TestLeaveForDeletion has an ingress that goes, what depends on it, and a CNI that stays.
func TestLeaveForDeletion(t *testing.T) {
	going := &addonsv1.AddonLifecycle{OnClusterDelete: addonsv1.OnClusterDeleteRemove}
	record := func(name string, dependsOn ...string) deliver.Summary {
		return addons.Installed("platform", name, dependsOn...)
	}
	forged := record("forged", "site") // nobody has written it here
	q, _ := askedCluster(t, record("ingress"), record("site", "ingress"), record("page", "site"), record("cni"), record("orphan"), addons.Installed("paused", "gateway"), addons.Installed("paused", "portal", "platform/ingress"))
	for _, r := range q.installed {
		q.ca.Status.Addons = append(q.ca.Status.Addons, releases.Status(r, addonsv1.AddonReady))
	}
	slices.SortFunc(q.ca.Status.Addons, func(a, b addonsv1.AddonStatus) int { return strings.Compare(a.Name, b.Name) })
	q.installed[forged.Release] = forged
	q.wanted = []wanted.Addon{
		{Stack: "platform", Addon: addonsv1.Addon{Name: "ingress", Namespace: "apps", Lifecycle: going}, Spec: addonsv1.AddonStackSpec{Lifecycle: &addonsv1.StackLifecycle{HoldSeconds: ptr.To[int32](7)}}},
		{Stack: "platform", Addon: addonsv1.Addon{Name: "cni", Namespace: "apps"}},
		{Stack: "platform", Addon: addonsv1.Addon{Name: "orphan", Namespace: "apps", Lifecycle: going}, Spec: addonsv1.AddonStackSpec{DeletionPolicy: addonsv1.DeletionPolicyOrphan}},
	}
	q.wanted = append(q.wanted, wanted.Addon{Stack: "paused", Paused: true, Addon: addonsv1.Addon{Name: "gateway", Namespace: "apps", Lifecycle: going}})
	q.paused = sets.New("paused")
	q.unresolved = map[string]unresolvedStack{"other": {state: decide.Undecided}}
	hold := removal{q}.leaveForDeletion()
	if name, left := (removal{q}).awaitedStack(q.leaving[0]); left > 0 {
		t.Errorf("what goes with the Cluster waits for AddonStack %s", name)
	}
	var leaving, kept []string
	for _, r := range q.leaving {
		leaving = append(leaving, r.Name)
	}
	for _, s := range q.kept {
		kept = append(kept, s.Name)
	}
	if got := strings.Join(leaving, " ") + ", " + strings.Join(kept, " "); got != "page site ingress, forged cni gateway orphan portal" || hold != (upgrade.Hold{Time: 7 * time.Second}) {
		t.Errorf("%s: %+v", got, hold)
	}
	waiting := releases.Dependents(q.leaving)
	for _, r := range q.leaving {
		if _, waits := waiting[r.Release]; waits == (r.Name == "page") {
			t.Errorf("page has to leave first, and these wait: %v", waiting)
		}
	}
}

func TestSetDeletion(t *testing.T) {
	start := time.Unix(1000, 0)
	minute, forever := upgrade.Hold{Time: time.Minute}, upgrade.Hold{Time: time.Minute, Forever: true}
	for name, tc := range map[string]struct {
		left   []string
		hold   upgrade.Hold
		atMost time.Duration
		after  time.Duration
		state  addonsv1.GateState
		until  time.Duration
	}{
		"nothing is left":           {state: addonsv1.GateOpen},
		"something is":              {left: []string{"csi"}, hold: minute, after: 59 * time.Second, state: addonsv1.GateWaiting, until: time.Minute},
		"for too long":              {left: []string{"csi"}, hold: minute, after: time.Minute, state: addonsv1.GateExpired},
		"for ever":                  {left: []string{"csi"}, hold: forever, after: time.Hour, state: addonsv1.GateWaiting},
		"unreachable":               {left: []string{"csi"}, hold: minute, atMost: 10 * time.Minute, state: addonsv1.GateWaiting, until: time.Minute},
		"unreachable, and for ever": {left: []string{"csi"}, hold: forever, atMost: 10 * time.Minute, state: addonsv1.GateWaiting, until: 10 * time.Minute},
		"unreachable for too long":  {left: []string{"csi"}, hold: forever, atMost: 10 * time.Minute, after: 10 * time.Minute, state: addonsv1.GateExpired},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{}
			conditions.Set(ca, metav1.Condition{Type: addonsv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: addonsv1.DeletingReason})
			for _, now := range []time.Time{start, start.Add(tc.after)} {
				atMost := time.Time{}
				if tc.atMost > 0 {
					atMost = start.Add(tc.atMost)
				}
				setDeletion(ca, tc.left, tc.hold, atMost, now)
			}
			d, want := ca.Status.Deletion, time.Time{}
			if tc.until > 0 {
				want = start.Add(tc.until)
			}
			if d.State != tc.state || !d.Since.Time.Equal(start) || !d.Deadline.Time.Equal(want) {
				t.Errorf("%+v", d)
			}
			if c := conditions.Get(ca, addonsv1.DeletingCondition); strings.Contains(c.Message, "csi") != (len(tc.left) > 0) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Another management cluster continues with the release that says so, and with no other one.
func TestTakenOverIsOneRelease(t *testing.T) {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: addonsv1.ClusterAddonStatus{ObservedUID: "1", Addons: []addonsv1.AddonStatus{
		{Namespace: "apps", Name: "web", Reason: deliver.ReasonReleaseTakenOver}, {Namespace: "apps", Name: "db"},
	}}}
	record := func(namespace, name string) deliver.Summary {
		return deliver.Summary{Release: deliver.Release{Namespace: namespace, Name: name}}
	}
	for _, other := range []deliver.Summary{record("apps", "db"), record("other", "web"), record("apps", "cache")} {
		if isTakenOver(ca, other) {
			t.Errorf("%s is taken over", other.Release)
		}
	}
	if !isTakenOver(ca, record("apps", "web")) {
		t.Error("it isn't taken over")
	}
	if ca.Status.ObservedUID = "backup"; isTakenOver(ca, record("apps", "web")) {
		t.Error("the status of another ClusterAddon says so")
	}
}
