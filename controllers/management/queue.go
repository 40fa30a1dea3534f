// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// begunPriority is above that of events of watches, which is zero.
const begunPriority = 1

// Queue lets others start a reconcile, where no watch of the management cluster
// tells. It is a source of the controller: before that has started, additions are
// dropped, since the controller begins with all objects anyway.
type Queue struct {
	mu    sync.RWMutex
	queue priorityqueue.PriorityQueue[mcreconcile.Request]
}

// Start takes the controller's queue.
func (q *Queue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	prioritized, ok := queue.(priorityqueue.PriorityQueue[mcreconcile.Request])
	if !ok {
		return fmt.Errorf("the controller's queue is a %T, which has no priorities", queue)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = prioritized
	return nil
}

// Add enqueues an object of the management cluster.
func (q *Queue) Add(key client.ObjectKey) { q.add(key, priorityqueue.AddOpts{}) }

// IsEmpty reports whether no reconcile waits for a worker.
func (q *Queue) IsEmpty() bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.queue == nil || q.queue.Len() == 0
}

// AddBegun enqueues an object on which work has begun, before those on which it hasn't.
func (q *Queue) AddBegun(key client.ObjectKey) {
	q.add(key, priorityqueue.AddOpts{Priority: ptr.To(begunPriority)})
}

// AddAfter enqueues an object of the management cluster when the time has passed.
func (q *Queue) AddAfter(key client.ObjectKey, after time.Duration) {
	q.add(key, priorityqueue.AddOpts{After: after})
}

func (q *Queue) add(key client.ObjectKey, options priorityqueue.AddOpts) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.queue != nil {
		q.queue.AddWithOpts(options, Request(key))
	}
}
