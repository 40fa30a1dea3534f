// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/controllers/management"
)

// Queue lets others start a reconcile of a ClusterAddon.
type Queue struct{ management.Queue }

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
