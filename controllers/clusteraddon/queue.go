// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"strings"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/controllers/hub"
)

// Queue lets others start a reconcile of a ClusterAddon. It is a source of the
// controller: before that has started, additions are dropped, since the
// controller begins with all objects anyway.
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

// Add enqueues the ClusterAddon.
func (q *Queue) Add(key client.ObjectKey) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.queue != nil {
		q.queue.Add(hub.For(key))
	}
}

// AddCluster enqueues the ClusterAddon of a workload cluster, which has the
// Cluster's namespace and name.
func (q *Queue) AddCluster(name multicluster.ClusterName) {
	if namespace, cluster, ok := strings.Cut(name.String(), "/"); ok {
		q.Add(client.ObjectKey{Namespace: namespace, Name: cluster})
	}
}

// AddTarget enqueues the ClusterAddon of a workload cluster by the name that
// the deliverer knows it by.
func (q *Queue) AddTarget(name string) { q.AddCluster(multicluster.ClusterName(name)) }
