// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestStale has a cache that is behind the last write of a status: nothing is decided by it.
func TestStale(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	cached := clusterAddon()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached).WithStatusSubresource(cached).Build()
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(cached), cached))
	statuses := &management.Statuses{Client: c}
	if statuses.Stale(cached) {
		t.Error("nothing was written yet")
	}
	same := cached.DeepCopy()
	if err := statuses.Patch(t.Context(), cached, same); err != nil || same.ResourceVersion != cached.ResourceVersion {
		t.Errorf("no difference is written as %s: %v", same.ResourceVersion, err)
	}
	written := cached.DeepCopy()
	written.Status.ReadyAddons = "1/1"
	must.Succeed(t, statuses.Patch(t.Context(), cached, written))
	if !statuses.Stale(cached) {
		t.Error("the cache shows what was there before")
	}
	if statuses.Stale(written) {
		t.Error("the cache shows what was written")
	}
	if statuses.Forget(client.ObjectKeyFromObject(cached)); statuses.Stale(cached) {
		t.Error("it is gone")
	}
}

// TestWhatHasBegunComesFirst has a fleet finish clusters before it begins others.
func TestWhatHasBegunComesFirst(t *testing.T) {
	queue := priorityqueue.New[mcreconcile.Request]("test")
	defer queue.ShutDown()
	q := &management.Queue{}
	q.Add(client.ObjectKey{Name: "too early"})
	must.Succeed(t, q.Start(t.Context(), queue))
	for _, name := range []string{"a", "b", "c"} {
		q.Add(client.ObjectKey{Name: name})
	}
	q.AddBegun(client.ObjectKey{Name: "b"})
	for _, want := range []string{"b", "a", "c"} {
		got, _ := queue.Get()
		if got.Name != want {
			t.Errorf("%s comes, want %s", got.Name, want)
		}
		queue.Done(got)
	}
}
