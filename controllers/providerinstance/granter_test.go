// SPDX-License-Identifier: Apache-2.0

package providerinstance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

const expirySeconds = 40

// world is an API server, and two processes that grant with no more rights than the shared deployment has.
type world struct {
	*apiserver.Server
	t        *testing.T
	clock    *testclock.FakePassiveClock
	granters []*providerinstance.Granter
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := apiserver.Own(t, controlplane.Options{
		Name: "granter", CRDPaths: []string{"../../config/crd/bases/addons.cluster.x-k8s.io_providerinstances.yaml"},
	})
	w := &world{Server: server, t: t, clock: testclock.NewFakePassiveClock(time.Now())}
	group := []string{addonsv1.GroupVersion.Group}
	config := server.Allow(t, "webhooks",
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{"providerinstances"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{"providerinstances/status"}, Verbs: []string{"patch"}})
	for range 2 {
		c, err := client.New(config, client.Options{Scheme: apiserver.Scheme()})
		must.Succeed(t, err)
		w.granters = append(w.granters, &providerinstance.Granter{Client: c, APIReader: c, Memory: grant.NewMemory(w.clock), Clock: w.clock})
	}
	return w
}

// reconcile has both granters do what they have to, until nothing is left. It returns when they want to look again.
func (w *world) reconcile() (next time.Duration) {
	w.t.Helper()
	for range 4 {
		for _, g := range w.granters {
			result, err := g.Reconcile(w.t.Context(), reconcile.Request{})
			must.Succeed(w.t, err)
			next = result.RequeueAfter
		}
	}
	return next
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *world) create(name string, namespaces ...string) *addonsv1.ProviderInstance {
	w.t.Helper()
	pi := &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: namespaces, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: name + "-1", Claim: addonsv1.ScopeClaiming, ExpirySeconds: expirySeconds,
		},
	}
	must.Succeed(w.t, w.Create(w.t.Context(), pi))
	return pi
}

// beat writes what an instance writes that fares well.
func (w *world) beat(pi *addonsv1.ProviderInstance) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": addonsv1.ProviderInstanceStatus{
		HeartbeatTime: metav1.NowMicro(),
		Conditions:    []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason, LastTransitionTime: metav1.Now()}},
	}})
	must.Succeed(w.t, err)
	must.Succeed(w.t, w.Status().Patch(w.t.Context(), pi.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// is expects a state of the grant, and returns the object.
func (w *world) is(pi *addonsv1.ProviderInstance, state addonsv1.GrantState) *addonsv1.ProviderInstance {
	w.t.Helper()
	now := &addonsv1.ProviderInstance{}
	must.Succeed(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(pi), now))
	if g := now.Status.Grant; g == nil || g.State != state || g.Holder != now.Spec.Holder {
		w.t.Fatalf("the grant of %s is %+v, want %s", pi.Name, g, state)
	}
	return now
}

// TestGranter has two processes grant scopes, side by side, to instances that live, die, come back, and are deleted.
func TestGranter(t *testing.T) {
	w := newWorld(t)
	first, other := w.create("first", "team-a", "team-b"), w.create("other", "team-c")
	w.reconcile()
	w.beat(first)
	w.beat(other)
	w.is(first, addonsv1.GrantGranted)
	w.is(other, addonsv1.GrantGranted)

	second := w.create("second", "team-b")
	if next := w.reconcile(); next > expirySeconds*time.Second {
		t.Errorf("it looks again after %s", next)
	}
	refused := w.is(second, addonsv1.GrantRefused)
	for _, part := range []string{"default/first", "namespaces team-a, team-b", "v1.2.3", "holds namespace team-b", "40s after its last heartbeat", "--watch-filter"} {
		if !strings.Contains(refused.Status.Grant.Message, part) {
			t.Errorf("the refusal doesn't say %q: %s", part, refused.Status.Grant.Message)
		}
	}
	w.reconcile()
	if again := w.is(second, addonsv1.GrantRefused); again.ResourceVersion != refused.ResourceVersion {
		t.Error("a refusal is written twice")
	}

	w.pass(30 * time.Second)
	w.beat(first)
	w.beat(second)
	w.reconcile()
	w.pass(39 * time.Second)
	w.beat(second)
	w.reconcile()
	w.is(first, addonsv1.GrantGranted)
	w.is(other, addonsv1.GrantExpired)
	w.pass(time.Second)
	w.reconcile()
	dead := w.is(first, addonsv1.GrantExpired)
	ready := conditions.Get(dead, addonsv1.ReadyCondition)
	for _, part := range []string{"No heartbeat since 20", "expires after 40 s", "process first-1", "kubectl delete providerinstance -n default first"} {
		if ready.Status != metav1.ConditionUnknown || ready.Reason != addonsv1.HeartbeatExpiredReason || !strings.Contains(ready.Message, part) {
			t.Errorf("the condition doesn't say %q: %+v", part, ready)
		}
	}
	w.is(second, addonsv1.GrantGranted)

	w.beat(first) // it comes back, too late
	w.reconcile()
	w.is(first, addonsv1.GrantRefused)

	if err := w.Delete(t.Context(), second); err != nil { // without its process
		t.Fatal(err)
	}
	w.reconcile()
	if message := w.is(first, addonsv1.GrantRefused).Status.Grant.Message; !strings.Contains(message, "default/second") || !strings.Contains(message, "deleted without its process") {
		t.Error(message)
	}
	again := w.create("second", "team-b") // by the same process
	w.reconcile()
	w.is(again, addonsv1.GrantGranted)
	for _, e := range w.Audit.Beginning().Requests(t, audit.By("webhooks")) {
		if audit.Forbidden(&e) {
			t.Errorf("it asks for what it may not have: %s %s", e.Verb, e.RequestURI)
		}
	}
}

// A process that grants starts, and knows of no heartbeat: who is silent counts as alive for one expiry more.
func TestGranterRestarts(t *testing.T) {
	long.InCI(t)
	w := newWorld(t)
	first := w.create("first", "team-a")
	w.reconcile()
	w.pass(39 * time.Second)
	for _, g := range w.granters {
		g.Memory = grant.NewMemory(w.clock)
	}
	second := w.create("second", "team-a")
	w.reconcile()
	w.pass(39 * time.Second)
	w.beat(second)
	w.reconcile()
	w.is(second, addonsv1.GrantRefused)
	w.pass(time.Second)
	w.reconcile()
	w.is(first, addonsv1.GrantExpired)
	w.is(second, addonsv1.GrantGranted)
}
