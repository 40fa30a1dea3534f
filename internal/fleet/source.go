// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Member is what a source knows about one cluster.
type Member struct {
	// ID tells two clusters of the same name apart, e.g. a UID. When it
	// changes, the old connection is dropped at once.
	ID string
	// Kubeconfig is empty as long as there is none. A source that fails to read
	// one repeats the last that it has read.
	Kubeconfig []byte
	// Problem says why there is no Kubeconfig although its origin exists, as
	// the end of a sentence that begins with Origin. Deterministic.
	Problem string
	// Origin says where the kubeconfig is kept, for messages, e.g.
	// "Secret team-a/prod-kubeconfig".
	Origin string
	// Labels are those that clusters are selected by.
	Labels map[string]string
	// Properties are other facts, e.g. the class of the cluster.
	Properties map[string]string
}

// Sink takes what a source finds. Its methods never block, and may be called
// before the Provider starts, in parallel, and with what is known already.
type Sink interface {
	// Set reports a cluster, or a change of it.
	Set(multicluster.ClusterName, Member)
	// Remove reports that a cluster is gone, or out of scope: its connection is
	// closed without a request to it.
	Remove(multicluster.ClusterName)
}

// Source discovers clusters.
type Source interface {
	// SetupWithManager registers what the source runs, before the manager
	// starts. From then on the source reports to the sink.
	SetupWithManager(mcmanager.Manager, Sink) error
	// Refresh asks the source to read the kubeconfig of a cluster again soon,
	// past any cache, because the server doesn't accept the known one. It
	// never blocks.
	Refresh(multicluster.ClusterName)
}
