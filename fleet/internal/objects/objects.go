// SPDX-License-Identifier: Apache-2.0

// Package objects has what the sources share that find clusters by objects of the management cluster.
package objects

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/secret"
)

const (
	// workers read Secrets in parallel.
	workers = 10
	// firstRetry and longestRetry bound the time between reads of one that fail.
	firstRetry, longestRetry = 100 * time.Millisecond, 30 * time.Second
)

// NameOf returns "namespace/name".
func NameOf(key types.NamespacedName) multicluster.ClusterName {
	return multicluster.ClusterName(key.String())
}

// KeyOf returns the object that a cluster has its name from.
func KeyOf(name multicluster.ClusterName) types.NamespacedName {
	namespace, object, _ := strings.Cut(name.String(), "/")
	return types.NamespacedName{Namespace: namespace, Name: object}
}

// Options returns those of a source's controller.
func Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry),
	}
}

// Reports is what the sources have in common that find clusters by objects and read Secrets.
type Reports struct {
	Sink    fleet.Sink
	Secrets *secret.Reader
	Queue   Queue
}

// Setup has to come before the controller starts.
func (r *Reports) Setup(mgr manager.Manager, sink fleet.Sink) {
	r.Sink, r.Secrets = sink, secret.NewReader(mgr)
}

// Refresh implements fleet.Source: the Secret is read again, and the object reconciled.
func (r *Reports) Refresh(name multicluster.ClusterName) {
	key := KeyOf(name)
	r.Secrets.Expire(key)
	r.Queue.Add(key)
}

// Remove reports that an object is gone, or no cluster any more.
func (r *Reports) Remove(key types.NamespacedName) {
	r.Secrets.Forget(key)
	r.Sink.Remove(NameOf(key))
}

// Queue lets others than watches ask for a reconcile.
type Queue struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// Source captures the queue of a controller, once it starts.
func (q *Queue) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.queue.Store(&queue)
		return nil
	})
}

// Add asks for a reconcile. It does nothing before the controller has started: each object is
// reconciled then.
func (q *Queue) Add(key types.NamespacedName) {
	if queue := q.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: key})
	}
}
