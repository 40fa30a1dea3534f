// SPDX-License-Identifier: Apache-2.0

package assigner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assigner"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	suite.RunOnServer(m, "assigner", &server, "providerinstances", "clusteraddons")
}

const team, elsewhere = "team", "elsewhere"

// fleet is an assigner of namespace team with no more rights than it has in a cluster.
type fleet struct {
	*testing.T
	*assigner.Assigner
	clock *testingclock.FakeClock
}

func newFleet(t *testing.T, moves int) *fleet {
	t.Helper()
	for _, namespace := range []string{team, elsewhere} {
		must.Succeed(t, client.IgnoreAlreadyExists(server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	config := server.Allow(t, strings.ToLower(t.Name()),
		rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"providerinstances"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"clusteraddons"}, Verbs: []string{"get"}})
	c, err := client.New(config, client.Options{Scheme: apiserver.Scheme()})
	must.Succeed(t, err)
	f := &fleet{T: t, clock: testingclock.NewFakeClock(time.Now())}
	f.Assigner = &assigner.Assigner{
		Options: assigner.Options{Namespaces: []string{team}, MovesPerHour: moves},
		Client:  c, APIReader: c, Recorder: events.NewFakeRecorder(1000), Clock: f.clock,
	}
	return f
}

// instance makes a ProviderInstance that works.
func (f *fleet) instance(filter string) *addonsv1.ProviderInstance {
	f.Helper()
	pi := &addonsv1.ProviderInstance{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: filter}, Spec: addonsv1.ProviderInstanceSpec{
		WatchFilter: filter, Namespaces: []string{team}, Version: "v1", APIVersions: []string{"v1beta1"}, Holder: "a", Claim: addonsv1.ScopeClaiming, ExpirySeconds: 40,
	}}
	must.Succeed(f, server.Create(f.Context(), pi))
	f.Cleanup(func() { must.Succeed(f, server.Delete(context.WithoutCancel(f.Context()), pi)) })
	pi.Status.Grant = &addonsv1.ScopeGrant{Holder: "a", State: addonsv1.GrantGranted}
	pi.Status.Conditions = []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}}
	must.Succeed(f, server.Status().Update(f.Context(), pi))
	return pi
}

func (f *fleet) cluster(namespace, name, filter string) *clusterv1.Cluster {
	f.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterv1.ClusterSpec{
		ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "ControlPlane", Name: name},
	}}
	if filter != "" {
		c.Labels = map[string]string{clusterv1.WatchLabel: filter}
	}
	must.Succeed(f, server.Create(f.Context(), c))
	f.Cleanup(func() {
		must.Succeed(f, client.IgnoreNotFound(server.Delete(context.WithoutCancel(f.Context()), c)))
	})
	return c
}

func (f *fleet) reconcile() {
	f.Helper()
	_, err := f.Reconcile(f.Context(), reconcile.Request{})
	must.Succeed(f, err)
}

// loads returns the Clusters of the namespaces by their label.
func (f *fleet) loads() map[string]int {
	f.Helper()
	all, loads := &clusterv1.ClusterList{}, map[string]int{}
	must.Succeed(f, server.List(f.Context(), all))
	for i := range all.Items {
		loads[all.Items[i].Namespace+"/"+all.Items[i].Labels[clusterv1.WatchLabel]]++
	}
	return loads
}

func (f *fleet) expect(when string, want map[string]int) {
	f.Helper()
	if got := f.loads(); fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("%s: %v, not %v", when, got, want)
	}
}

// TestAssign goes from no instance to two, and back to one, with as many moves an hour as are allowed.
func TestAssign(t *testing.T) {
	f := newFleet(t, 3)
	for i := range 12 {
		f.cluster(team, fmt.Sprintf("c%02d", i), "")
	}
	f.cluster(team, "pinned", "mine")
	f.cluster(elsewhere, "other", "")
	f.reconcile()
	f.expect("no instance", map[string]int{"elsewhere/": 1, "team/": 12, "team/mine": 1})

	blue := f.instance("blue")
	f.reconcile()
	f.expect("the first one", map[string]int{"elsewhere/": 1, "team/blue": 12, "team/mine": 1})
	mark := server.Audit.Mark(t)
	f.reconcile()
	if n := len(mark.Requests(t, audit.Write)); n > 0 {
		t.Errorf("%d writes, though nothing is to do", n)
	}

	f.instance("green")
	f.reconcile()
	f.reconcile()
	f.expect("another one, within an hour", map[string]int{"elsewhere/": 1, "team/blue": 9, "team/green": 3, "team/mine": 1})
	f.clock.Step(time.Hour)
	f.reconcile()
	f.expect("an hour later", map[string]int{"elsewhere/": 1, "team/blue": 6, "team/green": 6, "team/mine": 1})

	blue.Spec.Drain = ptr.To(true)
	must.Succeed(t, server.Update(t.Context(), blue))
	for range 3 {
		f.clock.Step(time.Hour)
		f.reconcile()
	}
	f.expect("one is drained", map[string]int{"elsewhere/": 1, "team/green": 12, "team/mine": 1})
}

// TestSilentInstance gives nothing to an instance that doesn't work, and takes nothing from it.
func TestSilentInstance(t *testing.T) {
	f := newFleet(t, 10)
	blue := f.instance("blue")
	f.cluster(team, "c1", "")
	f.reconcile()
	blue.Status.Conditions[0].Status = metav1.ConditionUnknown
	must.Succeed(t, server.Status().Update(t.Context(), blue))
	f.instance("green")
	f.cluster(team, "c2", "")
	f.reconcile()
	f.expect("one is silent", map[string]int{"team/blue": 1, "team/green": 1})
}

// TestBusyClusters moves no Cluster that is being deleted, upgraded or rolled out to, and others in their place.
func TestBusyClusters(t *testing.T) {
	f := newFleet(t, 10)
	blue := f.instance("blue")
	busy := map[string]func(*clusterv1.Cluster){
		"deleted": func(c *clusterv1.Cluster) {
			c.Finalizers = []string{"example.com/stay"}
			must.Succeed(t, server.Update(t.Context(), c))
			must.Succeed(t, server.Delete(t.Context(), c))
			t.Cleanup(func() {
				must.Succeed(t, server.Patch(context.WithoutCancel(t.Context()), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
			})
		},
		"paused": func(c *clusterv1.Cluster) {
			c.Spec.Paused = ptr.To(true)
			must.Succeed(t, server.Update(t.Context(), c))
		},
		"upgraded": func(c *clusterv1.Cluster) {
			c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: []clusterv1.StatusVersion{
				{Version: "v1.35.0", Replicas: 1}, {Version: "v1.36.0", Replicas: 2},
			}}
			must.Succeed(t, server.Status().Update(t.Context(), c))
		},
		"rolled-out-to": func(c *clusterv1.Cluster) { f.clusterAddon(c.Name, addonsv1.AddonsProgressingReason, true) },
	}
	for name, make := range busy {
		c := f.cluster(team, name, "")
		f.reconcile()
		must.Succeed(t, server.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		make(c)
	}
	f.cluster(team, "idle", "")
	f.clusterAddon("idle", addonsv1.AddonsReadyReason, true)
	f.cluster(team, "silent", "")
	f.clusterAddon("silent", addonsv1.AddonsProgressingReason, false)
	f.reconcile()
	blue.Spec.Drain = ptr.To(true)
	must.Succeed(t, server.Update(t.Context(), blue))
	f.instance("green")
	f.reconcile()
	f.expect("one is drained", map[string]int{"team/blue": len(busy), "team/green": 2})
}

// clusterAddon makes the ClusterAddon of a Cluster.
func (f *fleet) clusterAddon(name, reason string, reachable bool) {
	f.Helper()
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name}, Spec: addonsv1.ClusterAddonSpec{ClusterName: name}}
	must.Succeed(f, server.Create(f.Context(), ca))
	f.Cleanup(func() { must.Succeed(f, server.Delete(context.WithoutCancel(f.Context()), ca)) })
	ca.Status.ObservedGeneration = ca.Generation
	ca.Status.Conditions = []metav1.Condition{{Type: addonsv1.AddonsReadyCondition, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now()}}
	if reachable {
		ca.Status.Conditions = append(ca.Status.Conditions, metav1.Condition{
			Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionTrue, Reason: "Connected", LastTransitionTime: metav1.Now(),
		})
	}
	must.Succeed(f, server.Status().Update(f.Context(), ca))
}

// TestCaches has the cache of a process that keeps Clusters already keep those of the namespaces alone.
func TestCaches(t *testing.T) {
	byObject := map[client.Object]cache.ByObject{&clusterv1.Cluster{}: {}, &addonsv1.ProviderInstance{}: {}}
	assigner.Options{Namespaces: []string{team}}.AddCaches(byObject)
	var kept []cache.ByObject
	for of, by := range byObject {
		if _, is := of.(*clusterv1.Cluster); is {
			kept = append(kept, by)
		}
	}
	if len(kept) != 1 || len(byObject) != 2 || len(kept[0].Namespaces) != 1 {
		t.Errorf("Clusters are kept by %+v", kept)
	}
}
