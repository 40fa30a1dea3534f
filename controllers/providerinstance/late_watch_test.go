// SPDX-License-Identifier: Apache-2.0

package providerinstance_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/instance/arbiter"
)

// A watch that is behind shows no heartbeat of an instance that lives: it isn't marked.
func TestInstanceOfALateWatchIsNotMarked(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := addonsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	clock := testclock.NewFakeClock(time.Now())
	seen := newInstance("living", addonsv1.ScopeActive)
	seen.Status.HeartbeatTime = metav1.NewMicroTime(clock.Now())
	now := seen.DeepCopy()
	now.Status.HeartbeatTime = metav1.NewMicroTime(clock.Now().Add(expirySeconds * time.Second))
	for name, tc := range map[string]struct {
		there *addonsv1.ProviderInstance
		marks bool
	}{"it lives": {now, false}, "it doesn't": {seen, true}} {
		withStatus := func(o client.Object) client.Client {
			return fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build()
		}
		live := withStatus(tc.there.DeepCopy())
		clock := testclock.NewFakeClock(clock.Now())
		r := &providerinstance.ExpiryReconciler{APIReader: live, Observer: arbiter.NewObserver(clock), Clock: clock}
		r.Client = reading{Client: live, from: withStatus(seen.DeepCopy())}
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(seen)}
		for _, pass := range []time.Duration{0, (expirySeconds + 1) * time.Second} {
			clock.Step(pass)
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		is := &addonsv1.ProviderInstance{}
		if err := live.Get(t.Context(), request.NamespacedName, is); err != nil {
			t.Fatal(err)
		}
		if marked := conditions.GetReason(is, addonsv1.ReadyCondition) == addonsv1.HeartbeatExpiredReason; marked != tc.marks {
			t.Errorf("%s: marked %t", name, marked)
		}
	}
}

// reading reads from a cache, and writes to the API server.
type reading struct {
	client.Client
	from client.Reader
}

func (r reading) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return r.from.Get(ctx, key, o, options...)
}
