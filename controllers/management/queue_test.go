// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/controllers/management"
)

// TestWhatHasBegunComesFirst has a fleet finish clusters before it begins others.
func TestWhatHasBegunComesFirst(t *testing.T) {
	queue := priorityqueue.New[mcreconcile.Request]("test")
	defer queue.ShutDown()
	q := &management.Queue{}
	q.Add(client.ObjectKey{Name: "too early"})
	if err := q.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
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
