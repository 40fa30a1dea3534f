// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// Queue lets others start a reconcile, where no watch of the management cluster
// tells. It is a source of the controller: before that has started, additions are
// dropped, since the controller begins with all objects anyway.
type Queue struct {
	mu    sync.RWMutex
	queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]
}

// Start takes the controller's queue.
func (q *Queue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
	return nil
}

// Add enqueues an object of the management cluster.
func (q *Queue) Add(key client.ObjectKey) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.queue != nil {
		q.queue.Add(Request(key))
	}
}

// AddAfter enqueues an object of the management cluster when the time has passed.
func (q *Queue) AddAfter(key client.ObjectKey, after time.Duration) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.queue != nil {
		q.queue.AddAfter(Request(key), after)
	}
}
