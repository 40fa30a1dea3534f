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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
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
