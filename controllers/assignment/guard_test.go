// SPDX-License-Identifier: Apache-2.0

package assignment_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// hub is a management cluster in which stack "platform" runs on clusters, with one add-on on each.
type hub struct {
	*testing.T
	client.Client
	clock    *testingclock.FakeClock
	r        *assignment.Reconciler
	missing  *missing.Stacks
	offers   *offers
	stack    *addonsv1.AddonStack
	revision *appsv1.ControllerRevision
	clusters []string
}

// offers is what the API server says about our kinds.
type offers struct {
	discovery.ServerResourcesInterface
	verbs []string
}

func (o *offers) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "addonstacks", Verbs: o.verbs}, {Name: "clusteraddons", Verbs: o.verbs}}}, nil
}

const team = "team"

func newHub(t *testing.T, clusters int, policy addonsv1.DeletionPolicy) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, apiextensionsv1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	h := &hub{T: t, clock: testingclock.NewFakeClock(time.Now())}
	h.stack = &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "platform", UID: "platform", Generation: 1}}
	h.stack.Spec = addonsv1.AddonStackSpec{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, Addons: []addonsv1.Addon{{Name: "web", Namespace: "apps"}}, DeletionPolicy: policy,
	}
	h.revision = h.revisionOf("platform-1", 1)
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, h.stack, h.revision,
		newCRD(48 * time.Hour),
	}
	for i := range clusters {
		name := fmt.Sprintf("prod-%d", i)
		h.clusters = append(h.clusters, name)
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: "cluster", Labels: map[string]string{"env": "prod"}}}
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, Generation: 1, CreationTimestamp: ago(24 * time.Hour)}}
		ca.Spec.ClusterName = name
		assigned := addonsv1.StackRevision{Name: "platform", Revision: "platform-1"}
		if policy == addonsv1.DeletionPolicyOrphan {
			assigned.DeletionPolicy = policy
			ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: "platform-1", RecordedDeletionPolicy: policy}}
		}
		ca.Spec.Stacks = []addonsv1.StackRevision{assigned}
		ca.Status.ObservedGeneration = 1
		ca.Status.Addons = []addonsv1.AddonStatus{{Stack: "platform", Namespace: "apps", Name: "web", Phase: addonsv1.AddonReady, Revision: 1, Objects: &addonsv1.ObjectCounts{Total: 1}}}
		objects = append(objects, cluster, ca)
	}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	h.restart()
	return h
}

func ago(d time.Duration) metav1.Time {
	return metav1.NewTime(time.Now().Add(-d).Truncate(time.Second))
}

// newCRD returns the CRD of AddonStacks, made some time ago.
func newCRD(age time.Duration) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addonstacks.addons.cluster.x-k8s.io", CreationTimestamp: ago(age)}}
}

// restart is another process.
func (h *hub) restart() {
	h.offers = &offers{verbs: []string{"create"}}
	h.missing = missing.New(h.offers, h.Client, h.clock)
	members := &member.Inventory{Client: h.Client, Fleet: fleet.NewProvider(fleet.Options{})}
	h.r = &assignment.Reconciler{
		Client: h.Client, APIReader: h.Client, Recorder: events.NewFakeRecorder(100), Members: members, Turns: &management.Turns{},
		Missing: h.missing, Guard: removal.NewGuard(h.Client, members, h.missing, h.clock), Clock: h.clock,
	}
}

// isInForce has the process see the stack as it is now, and removals not wait any more.
func (h *hub) isInForce() {
	h.Helper()
	all, revisions := &addonsv1.AddonStackList{}, &appsv1.ControllerRevisionList{}
	h.must(h.List(h.Context(), all, client.InNamespace(team)))
	h.must(h.List(h.Context(), revisions, client.InNamespace(team)))
	var snapshots candidate.Snapshots
	candidates, err := snapshots.Read(team, all.Items, revisions.Items)
	h.must(err)
	h.missing.Present(team, candidates)
	h.clock.Step(missing.DeletionGrace)
}

// revisionOf returns a revision of the stack as it is now.
func (h *hub) revisionOf(name string, number int64) *appsv1.ControllerRevision {
	h.Helper()
	revision := stacks.Revision(h.T, name, h.stack.Spec)
	revision.Namespace, revision.Labels, revision.Revision = team, map[string]string{addonsv1.StackNameLabel: "platform"}, number
	revision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(h.stack, addonsv1.GroupVersion.WithKind("AddonStack"))}
	return &revision
}

// deleted deletes the stack. Long says that it has been gone for longer than a replacement takes.
func (h *hub) deleted(long bool) {
	h.Helper()
	h.must(h.Delete(h.Context(), h.stack))
	if long {
		h.isGone()
	}
}

// isGone has the process see that the stack isn't there, and a minute pass.
func (h *hub) isGone() {
	h.Helper()
	made := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(h.clock.Now())}}
	_, err := h.missing.MayReturn(h.Context(), client.ObjectKeyFromObject(h.stack), made)
	h.must(err)
	h.clock.Step(time.Minute)
}

func (h *hub) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// reconcile returns when it is to be done again, 0 for never.
func (h *hub) reconcile(name string) (again time.Duration) {
	h.Helper()
	req := mcreconcile.Request{}
	req.NamespacedName = client.ObjectKey{Namespace: team, Name: name}
	result, err := h.r.Reconcile(h.Context(), req)
	h.must(err)
	return result.RequeueAfter
}

// change changes an object as somebody else does.
func change[T client.Object](h *hub, object T, name string, mutate func(T)) {
	h.Helper()
	h.must(h.Get(h.Context(), client.ObjectKey{Namespace: team, Name: name}, object))
	mutate(object)
	h.must(h.Update(h.Context(), object))
}

func (h *hub) clusterAddon(name string) *addonsv1.ClusterAddon {
	h.Helper()
	ca := &addonsv1.ClusterAddon{}
	h.must(h.Get(h.Context(), client.ObjectKey{Namespace: team, Name: name}, ca))
	return ca
}

// expect reconciles a cluster, and expects that the stack is "assigned", "held" or "gone".
func (h *hub) expect(name, want string) {
	h.Helper()
	h.reconcile(name)
	got := "gone"
	if ca := h.clusterAddon(name); stack.IsAssigned(ca.Spec.Stacks, "platform") {
		got = "assigned"
		if ca.Spec.Stacks[0].HeldRemoval != nil {
			got = "held"
		}
	}
	if got != want {
		h.Errorf("of %s the stack is %s, want %s", name, got, want)
	}
}

func relabel(h *hub, name string) {
	h.Helper()
	h.isInForce()
	change(h, &clusterv1.Cluster{}, name, func(c *clusterv1.Cluster) { c.Labels["env"] = "none" })
}

// A stack that is gone goes from its cluster once it can't have been replaced, and one that went amidst other things is held.
func TestStackOfOneClusterIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(h *hub)
		long   bool
		do     func(h *hub)
		want   string
	}{
		"a moment ago": {want: "assigned"},
		"for a while":  {long: true, want: "gone"},
		"another stack is to have its add-on, and is paused before its edit is kept": {before: func(h *hub) {
			other := h.otherStack("other-1")
			change(h, &appsv1.ControllerRevision{}, "other-1", func(r *appsv1.ControllerRevision) {
				r.Data = stacks.Revision(h.T, "", having("cni")).Data
				stack.SetGeneration(r, 1)
			})
			other.Generation = 2
			metav1.SetMetaDataAnnotation(&other.ObjectMeta, clusterv1.PausedAnnotation, "")
			h.must(h.Update(h.Context(), other))
		}, long: true, want: "assigned"},
		"its deletion waits for a finalizer": {before: func(h *hub) {
			h.stack.Finalizers = []string{"example.com/stay"}
			h.must(h.Update(h.Context(), h.stack))
		}, long: true, want: "gone"},
		"it was there since its CRD was made again": {before: func(h *hub) {
			h.must(h.Delete(h.Context(), newCRD(0)))
			h.must(h.Create(h.Context(), newCRD(time.Hour)))
			h.expect("prod-0", "assigned")
		}, long: true, want: "gone"},
		"with an earlier CRD": {nil, true, func(h *hub) {
			h.must(h.Delete(h.Context(), newCRD(time.Hour)))
			h.must(h.Create(h.Context(), newCRD(time.Hour)))
		}, "held"},
		"with its CRD, which is back by now": {nil, false, func(h *hub) {
			h.offers.verbs = []string{"get"}
			h.expect("prod-0", "assigned")
			h.offers.verbs = []string{"create"}
			h.clock.Step(missing.DeletionGrace)
		}, "held"},
		"another instance has it": {nil, true, func(h *hub) {
			back := h.stack.DeepCopy()
			back.ResourceVersion = ""
			h.must(h.Create(h.Context(), back))
			h.r.Client = withoutStacks{h.Client}
		}, "assigned"},
		"its cluster is paused": {nil, true, func(h *hub) {
			change(h, &clusterv1.Cluster{}, "prod-0", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })
		}, "assigned"},
		"its cluster is being deleted": {nil, true, func(h *hub) {
			change(h, &clusterv1.Cluster{}, "prod-0", func(c *clusterv1.Cluster) { c.Finalizers = []string{"example.com/stay"} })
			h.must(h.Delete(h.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "prod-0"}}))
		}, "assigned"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, 1, "")
			if tc.before != nil {
				tc.before(h)
			}
			h.deleted(tc.long)
			if tc.do != nil {
				tc.do(h)
			}
			h.expect("prod-0", tc.want)
		})
	}
}

// withoutStacks is the cache of an instance that doesn't see the stacks.
type withoutStacks struct{ client.Client }

func (c withoutStacks) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, isStacks := list.(*addonsv1.AddonStackList); isStacks {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

// What would go from a fleet is held until somebody confirms it, whatever changes meanwhile.
func TestRemovalOfAFleetIsHeld(t *testing.T) {
	h := newHub(t, 3, "")
	h.deleted(true)
	for _, name := range h.clusters {
		h.expect(name, "held")
	}
	for _, name := range h.clusters[1:] { // so one alone is left
		h.must(h.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}}))
	}
	h.expect("prod-0", "held")
	confirmation := h.clusterAddon("prod-0").Spec.Stacks[0].HeldRemoval.Confirmation
	change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) {
		ca.Annotations = map[string]string{addonsv1.ConfirmRemovalAnnotation: confirmation}
	})
	h.expect("prod-0", "gone")
	if _, has := h.clusterAddon("prod-0").Annotations[addonsv1.ConfirmRemovalAnnotation]; has {
		t.Error("the confirmation is left for the next change")
	}
}

// Removals one after the other count together, also those of a process before.
func TestRemovalsOneAfterTheOtherCount(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		h := newHub(t, 3, "")
		relabel(h, "prod-0")
		h.expect("prod-0", "gone")
		if restarts {
			h.restart()
		} else { // the cache is behind
			change(h, &addonsv1.ClusterAddon{}, "prod-0", func(ca *addonsv1.ClusterAddon) { ca.Annotations = nil })
		}
		relabel(h, "prod-1")
		h.expect("prod-1", "held")
	}
}

// A paused cluster loses nothing now, so it doesn't count as one that does.
func TestPausedClustersDoNotCount(t *testing.T) {
	h := newHub(t, 2, "")
	for _, name := range h.clusters {
		relabel(h, name)
	}
	change(h, &clusterv1.Cluster{}, "prod-1", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) })
	h.expect("prod-0", "gone")
}

// The limit is that of the stack as it is in force, not as it was assigned.
func TestLimitOfTheNewestRevision(t *testing.T) {
	h := newHub(t, 3, "")
	h.stack.Spec.ClusterSelector.MatchLabels["env"], h.stack.Spec.RemovalLimit = "none", ptr.To(intstr.FromInt32(3))
	h.must(h.Update(t.Context(), h.stack))
	h.must(h.Create(t.Context(), h.revisionOf("platform-2", 2)))
	h.isInForce()
	for _, name := range h.clusters {
		h.expect(name, "gone")
	}
}

// Nothing is held of a stack that leaves its add-ons behind.
func TestOrphansAreNotHeld(t *testing.T) {
	h := newHub(t, 3, addonsv1.DeletionPolicyOrphan)
	h.deleted(true)
	for _, name := range h.clusters {
		h.expect(name, "gone")
	}
	if at := slices.IndexFunc(h.clusters, func(name string) bool { return len(removal.Last(h.clusterAddon(name))) > 0 }); at >= 0 {
		t.Errorf("%s counts as a removal", h.clusters[at])
	}
}
