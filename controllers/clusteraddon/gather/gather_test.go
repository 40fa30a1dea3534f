// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// recordsOf are those of a cluster.
type recordsOf map[deliver.Release]deliver.Summary

func (r recordsOf) Of(multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool) {
	return r, true
}

// A revision with a field that this program doesn't know isn't used: the field may restrict what the stack asks for.
func TestRevisionWithUnknownFieldsIsNotRead(t *testing.T) {
	revision := func(name, spec string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: runtime.RawExtension{Raw: []byte(spec)}}
	}
	r := gather.Reader{Inputs: addons.Given(t).Inputs, Cache: fake.NewClientBuilder().WithScheme(addons.Scheme(t)).WithObjects(
		revision("a-1", `{"addons":[{"name":"web"}]}`), revision("b-1", `{"addons":[{"name":"web"}],"later":true}`)).Build()}
	all, err := r.Stacks(t.Context(), []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}, {Name: "b", Revision: "b-1"}})
	must.Succeed(t, err)
	if all[0].Spec == nil || len(all[0].Unknown) > 0 {
		t.Errorf("a: %+v", all[0])
	}
	if all[1].Spec != nil || !slices.Equal(all[1].Unknown, []string{"spec.later"}) {
		t.Errorf("b: %+v", all[1])
	}
}

// TestUpgradesWaitForAssignments has a class and a version set at once: Cluster API asks before the stack of the new class
// is assigned.
func TestUpgradesWaitForAssignments(t *testing.T) {
	const previous, next = "previous", "next"
	now, release := time.Unix(1000, 0), addonsv1.AddonLifecycle{Upgrade: addonsv1.UpgradeBeforeControlPlane}
	of := func(class string, generation int64) addonsv1.AddonStack {
		s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-" + class, Generation: generation}}
		s.Spec = addonsv1.AddonStackSpec{ClassNames: []string{class}, Addons: []addonsv1.Addon{{Name: "cni", Lifecycle: &release}}}
		return s
	}
	all := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "all"}}
	all.Spec.ClusterSelector = &metav1.LabelSelector{}
	deleted := of(next, 1)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		class   string // of the Cluster
		written []addonsv1.AddonStack
		since   time.Duration
		want    string
	}{
		"nothing changed":                         {previous, []addonsv1.AddonStack{of(previous, 1), of(next, 1)}, 0, ""},
		"another class is set":                    {next, []addonsv1.AddonStack{of(previous, 1)}, 0, "of-previous"},
		"another class is set, which has a stack": {next, []addonsv1.AddonStack{of(previous, 1), of(next, 1)}, 0, "of-next, of-previous"},
		"another stack selects it, too":           {previous, []addonsv1.AddonStack{of(previous, 1), all}, 0, "all"},
		"that one is being deleted":               {next, []addonsv1.AddonStack{deleted}, 0, ""},
		"the stack was changed":                   {previous, []addonsv1.AddonStack{of(previous, 2)}, 0, "of-previous"},
		"it was, and its rollout isn't here":      {previous, []addonsv1.AddonStack{of(previous, 2)}, gather.AssignmentGrace, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
			cluster.Spec.Topology.ClassRef.Name = tc.class
			cluster.Spec.Topology.Version = "v1.25.0"
			cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{{Version: "v1.24.0"}}}
			own, hub := of(previous, 1), fake.NewClientBuilder().WithScheme(addons.Scheme(t))
			for i := range tc.written {
				if tc.written[i].DeletionTimestamp != nil {
					tc.written[i].Finalizers = []string{"test/kept"}
				}
				hub.WithObjects(&tc.written[i])
			}
			c := addons.Given(t)
			c.Inputs.Values.Cluster = member.OfCluster(cluster)
			r := gather.Reader{
				Cache: hub.Build(), Inputs: c.Inputs, Users: &inputs.References{}, Records: recordsOf{}, Running: "v1.24.0",
				OutdatedSince: map[string]time.Time{own.Name: now.Add(-tc.since)}, Now: now,
			}
			assigned := []gather.Stack{{StackRevision: addonsv1.StackRevision{Name: own.Name, Revision: "1"}, Written: &own, Spec: &own.Spec, Generation: 1}}
			o, known, err := r.Observe(t.Context(), c.ClusterAddon, assigned)
			if got := strings.Join(o.Outdated, ", "); got != tc.want || !known || err != nil {
				t.Errorf("it waits for %q; want %q: %t, %v", got, tc.want, known, err)
			}
			ready := (&wanted.Addon{Stack: own.Name, Addon: own.Spec.Addons[0]}).Status()
			ready.Phase = addonsv1.AddonReady
			if got := upgradegate.Causes(&o, []addonsv1.AddonStatus{ready}).Waiting; len(got) != len(o.Outdated) {
				t.Errorf("it waits for %+v", got)
			}
		})
	}
}

// A stack may leave a cluster that doesn't answer, and be paused before the cluster does: then nothing of it is removed.
func TestPausedStackThatLeftTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		paused, unproven, isGone bool
		was                      addonsv1.AddonPhase // for the pause
		want, isWatched          bool
	}{
		"it is paused":               {paused: true, want: true, isWatched: true},
		"it isn't":                   {isWatched: true},
		"it is gone":                 {isGone: true, isWatched: true},
		"it was paused when it went": {isGone: true, was: addonsv1.AddonRemoving, want: true, isWatched: true},
		"it was paused, and is back": {was: addonsv1.AddonRemoving, isWatched: true},
		"the record may name anyone": {paused: true, unproven: true},
	} {
		record := addons.Installed("platform", "web")
		record.Owner = "team/prod"
		c := addons.Given(t, record)
		if tc.was != "" {
			c.ClusterAddon.Status.Addons = []addonsv1.AddonStatus{{Stack: "platform", Namespace: record.Namespace, Name: "web", Phase: tc.was, Reason: reasons.StackPaused}}
		}
		if tc.unproven {
			c.Inputs.Proofs = &releases.Proofs{}
		}
		s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
		if tc.paused {
			s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}
		hub := fake.NewClientBuilder().WithScheme(addons.Scheme(t))
		if !tc.isGone {
			hub.WithObjects(s)
		}
		r := gather.Reader{Cache: hub.Build(), Inputs: c.Inputs, Users: &inputs.References{}, Records: recordsOf(c.Installed), Now: c.Now}
		o, known, err := r.Read(t.Context(), c.ClusterAddon)
		if o.Paused.Has("platform") != tc.want || !known || err != nil {
			t.Errorf("%s: paused are %v: %t, %v", name, o.Paused, known, err)
		}
		users := r.Users.Of(inputs.Object{Kind: inputs.KindStack, Key: client.ObjectKeyFromObject(s)})
		if got := slices.Contains(users, client.ObjectKeyFromObject(c.ClusterAddon)); got != tc.isWatched {
			t.Errorf("%s: a change of the stack is looked at: %t", name, got)
		}
	}
}

// A stack may leave a cluster, and be edited so that it selects it again, before the manager has removed anything, or while it restarts:
// the assignment is given time to follow.
func TestStackThatSelectsTheClusterAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*addonsv1.AddonStack)
		since  time.Duration
		want   bool
	}{
		"it does":                       {func(*addonsv1.AddonStack) {}, 0, true},
		"it has for a while":            {func(*addonsv1.AddonStack) {}, gather.AssignmentGrace - 1, true},
		"the assignment doesn't follow": {func(*addonsv1.AddonStack) {}, gather.AssignmentGrace, false},
		"it doesn't":                    {func(s *addonsv1.AddonStack) { s.Spec.ClassNames = []string{"other"} }, 0, false},
		"it is being deleted": {func(s *addonsv1.AddonStack) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"test/kept"}
		}, 0, false},
		"another one of the cluster does": {func(s *addonsv1.AddonStack) { s.Name = "other" }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			record := addons.Installed("platform", "web")
			record.Owner = "team/prod"
			c := addons.Given(t, record)
			c.Inputs.Values.Cluster = member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod"}})
			s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform"}}
			s.Spec.ClusterSelector = &metav1.LabelSelector{}
			tc.change(s)
			r := gather.Reader{
				Cache: fake.NewClientBuilder().WithScheme(addons.Scheme(t)).WithObjects(s).Build(), Inputs: c.Inputs, Users: &inputs.References{}, Records: recordsOf(c.Installed),
				OutdatedSince: map[string]time.Time{"platform": c.Now.Add(-tc.since)}, Now: c.Now,
			}
			o, known, err := r.Read(t.Context(), c.ClusterAddon)
			must.Succeed(t, err)
			if _, waits := o.Unresolved["platform"]; waits != tc.want || !known {
				t.Errorf("unresolved are %v", o.Unresolved)
			}
			leaving, kept := (removal.Unwanted{Observed: &o, Proofs: c.Inputs.Proofs}).Partition()
			if stays := len(kept) == 1 && len(leaving) == 0; stays != tc.want || len(kept)+len(leaving) != 1 {
				t.Errorf("leaving: %v, kept: %v", leaving, kept)
			}
		})
	}
}

// Two Clusters may have one API server: each sees its own releases.
func TestReleasesOfOtherClusterAddons(t *testing.T) {
	own, other := addons.Installed("platform", "own"), addons.Installed("platform", "other")
	own.Owner, other.Owner = "team/prod", "team/test"
	c := addons.Given(t, own, other)
	none := fake.NewClientBuilder().WithScheme(addons.Scheme(t)).Build()
	o, _, err := gather.Reader{Cache: none, Inputs: c.Inputs, Users: &inputs.References{}, Records: recordsOf(c.Installed)}.Read(t.Context(), c.ClusterAddon)
	must.Succeed(t, err)
	if _, has := o.Installed[own.Release]; !has || len(o.Installed) != 1 {
		t.Errorf("installed: %v", o.Installed)
	}
}
