// SPDX-License-Identifier: Apache-2.0

package providerinstance_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

const (
	expirySeconds = 40
	patience      = 30 * time.Second // of real time; nothing is waited for that long
)

// Two replicas, with no more rights than the shared deployment has, see an
// instance die, come back and die again.
func TestExpiredInstancesAreMarked(t *testing.T) {
	ctx := t.Context()
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Name: "expiry", AuditLog: auditLog, CRDPaths: []string{"../../config/crd/bases/addons.cluster.x-k8s.io_providerinstances.yaml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	user, err := cp.AddUser("webhooks")
	if err != nil {
		t.Fatal(err)
	}
	authorize(t, c)

	dying := newInstance("dying", addonsv1.ScopeActive)
	living := newInstance("living", addonsv1.ScopeWaiting)
	for _, pi := range []*addonsv1.ProviderInstance{dying, living} {
		if err := c.Create(ctx, pi); err != nil {
			t.Fatal(err)
		}
		beat(t, c, pi)
	}
	clock := testclock.NewFakeClock(time.Now())
	for range 2 {
		startReplica(t, user.Config, scheme, clock)
	}

	for range 2 {
		dieAndComeBack(t, c, clock, dying, living)
	}

	for _, pi := range []*addonsv1.ProviderInstance{dying, living} {
		if err := c.Delete(ctx, pi); err != nil {
			t.Fatal(err)
		}
	}
	never := newInstance("never", addonsv1.ScopeWaiting)
	if err := c.Create(ctx, never); err != nil {
		t.Fatal(err)
	}
	passUntil(t, clock, func() bool { return reason(t, c, never) == addonsv1.HeartbeatExpiredReason })
	if message := conditions.Get(get(t, c, never), addonsv1.ReadyCondition).Message; !strings.HasPrefix(message, "No heartbeat at all") {
		t.Error(message)
	}

	countWrites(t, auditLog, map[string]int{"dying": 2, "living": 2, "never": 1})
}

// dieAndComeBack lets first the one and then the other instance expire, and
// both return.
func dieAndComeBack(t *testing.T, c client.Client, clock *testclock.FakeClock, dying, living *addonsv1.ProviderInstance) {
	t.Helper()
	passed := passUntil(t, clock, func() bool { beat(t, c, living); return reason(t, c, dying) == addonsv1.HeartbeatExpiredReason })
	if passed < expirySeconds {
		t.Errorf("marked after %d s, before the expiry", passed)
	}
	marked := get(t, c, dying)
	ready := conditions.Get(marked, addonsv1.ReadyCondition)
	for _, part := range []string{"No heartbeat since 20", "expires after 40 s", "process host-1", "kubectl delete providerinstance -n default dying"} {
		if ready.Status != metav1.ConditionUnknown || !strings.Contains(ready.Message, part) {
			t.Errorf("the condition doesn't say %q: %+v", part, ready)
		}
	}
	if !conditions.IsTrue(marked, addonsv1.ScopeHeldCondition) {
		t.Errorf("another condition was touched: %+v", marked.Status.Conditions)
	}
	if got := reason(t, c, living); got != addonsv1.ReadyReason {
		t.Errorf("the living one says %s", got)
	}
	passUntil(t, clock, func() bool { return reason(t, c, living) == addonsv1.HeartbeatExpiredReason }) // the controllers go on
	if got := get(t, c, dying); got.ResourceVersion != marked.ResourceVersion {
		t.Error("the dead instance was written again")
	}
	beat(t, c, dying)
	beat(t, c, living)
}

// countWrites looks into the audit log for what both replicas wrote, and for
// what they weren't allowed.
func countWrites(t *testing.T, auditLog string, want map[string]int) {
	t.Helper()
	writes := map[string]int{}
	events, err := audit.Read(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.User.Username != "webhooks" || e.ResponseStatus == nil {
			continue
		}
		if e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("it asks for what it may not have: %s %s", e.Verb, e.RequestURI)
		}
		if e.Verb == "patch" && e.ResponseStatus.Code == http.StatusOK {
			writes[e.ObjectRef.Name]++
		}
	}
	if !maps.Equal(writes, want) {
		t.Errorf("writes of conditions: %v; want %v", writes, want)
	}
}

// authorize gives what the shared deployment has.
func authorize(t *testing.T, c client.Client) {
	t.Helper()
	group := []string{addonsv1.GroupVersion.Group}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "webhooks"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: group, Resources: []string{"providerinstances"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: group, Resources: []string{"providerinstances/status"}, Verbs: []string{"patch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "webhooks"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "webhooks"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "webhooks"}},
		},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func startReplica(t *testing.T, user *rest.Config, scheme *runtime.Scheme, clock *testclock.FakeClock) {
	t.Helper()
	mgr, err := ctrl.NewManager(user, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &providerinstance.ExpiryReconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Observer: arbiter.NewObserver(clock), Clock: clock}
	if err := r.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache doesn't sync")
	}
}

// passUntil lets seconds pass until something is so, and returns how many.
func passUntil(t *testing.T, clock *testclock.FakeClock, so func() bool) (seconds int) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); seconds++ {
		if time.Now().After(deadline) {
			t.Fatalf("it isn't so after %d s", seconds)
		}
		clock.Step(time.Second)
	}
	return seconds
}

func newInstance(name string, claim addonsv1.ScopeClaim) *addonsv1.ProviderInstance {
	return &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: addonsv1.ProviderInstanceSpec{
			Namespaces: []string{name}, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: "host-1", Claim: claim, ExpirySeconds: expirySeconds,
		},
	}
}

// beat writes what an instance writes that fares well.
func beat(t *testing.T, c client.Client, pi *addonsv1.ProviderInstance) {
	t.Helper()
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": addonsv1.ProviderInstanceStatus{
		HeartbeatTime: metav1.NowMicro(),
		Conditions: []metav1.Condition{
			{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason, LastTransitionTime: now},
			{Type: addonsv1.ScopeHeldCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ScopeHeldReason, LastTransitionTime: now},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Status().Patch(t.Context(), pi.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c client.Client, pi *addonsv1.ProviderInstance) *addonsv1.ProviderInstance {
	t.Helper()
	now := &addonsv1.ProviderInstance{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pi), now); err != nil {
		t.Fatal(err)
	}
	return now
}

func reason(t *testing.T, c client.Client, pi *addonsv1.ProviderInstance) string {
	t.Helper()
	return conditions.GetReason(get(t, c, pi), addonsv1.ReadyCondition)
}
