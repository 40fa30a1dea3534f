// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/test/must"
)

// withClusterAddon returns a management cluster, and the ClusterAddon in it.
func withClusterAddon(t *testing.T) (client.Client, *addonsv1.ClusterAddon) {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, addonsv1.AddToScheme(scheme))
	cached := clusterAddon()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached).WithStatusSubresource(cached).Build()
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(cached), cached))
	return c, cached
}

// TestStale has a cache that is behind the last write of a status: nothing is decided by it.
func TestStale(t *testing.T) {
	c, cached := withClusterAddon(t)
	statuses := &management.Statuses{Client: c, Clock: clock.RealClock{}}
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

// TestPause has a status that tells of progress alone wait until the last write was two seconds ago, and no longer.
func TestPause(t *testing.T) {
	c, cached := withClusterAddon(t)
	now := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	statuses, key := &management.Statuses{Client: c, Clock: now}, client.ObjectKeyFromObject(cached)
	must.Equal(t, 0, statuses.Pause(key), "before the first write")
	must.Succeed(t, statuses.Patch(t.Context(), cached, cached.DeepCopy()))
	must.Equal(t, 0, statuses.Pause(key), "without a write")
	written := cached.DeepCopy()
	written.Status.ReadyAddons = "1/1"
	must.Succeed(t, statuses.Patch(t.Context(), cached, written))
	for after, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 1500 * time.Millisecond: 500 * time.Millisecond, 2 * time.Second: 0, time.Hour: 0} {
		now.SetTime(time.Unix(1e9, 0).Add(after))
		must.Equal(t, want, statuses.Pause(key), "after "+after.String())
	}
	now.SetTime(time.Unix(1e9, 0))
	statuses.Forget(key)
	must.Equal(t, 0, statuses.Pause(key), "of an object that is gone")
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
