// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Member is what a source knows about one cluster.
type Member struct {
	// ID tells two clusters of the same name apart, e.g. a UID. When it, Cluster or Unlimited
	// changes, the old connection is dropped at once.
	ID string
	// Kubeconfig is checked as input that may be hostile. It is empty as long as
	// there is none. A source that fails to read one repeats the last that it has read.
	Kubeconfig []byte
	// Config takes the place of Kubeconfig where the program itself made it, or trusts
	// who did: nothing in it is checked. Nobody changes it afterwards.
	Config *rest.Config
	// Cluster is kept as it is, if it is there: the Provider returns and engages it, has it probed by its Config, and
	// makes no Connection. Whoever made it runs its cache. See [FromClusters].
	Cluster cluster.Cluster
	// Unlimited says that the server may answer as much as it likes, as the program's own cluster may.
	Unlimited bool
	// Created is when the object behind the cluster was made, if no two of them may lead to one cluster: the older has
	// it then. Clusters of a source that sets it are connected once that source has called Synced. Zero as a rule.
	Created time.Time
	// Expires is when the credentials end; zero if that isn't known. The source is asked to
	// refresh them when two thirds of the time until then have passed. New ones are swapped in
	// below running watches.
	Expires time.Time
	// Problem says why there is no Kubeconfig, or no newer one, although its origin exists, as
	// the end of a sentence that begins with Origin. Deterministic.
	Problem string
	// Origin says where the credentials are kept, for messages, e.g.
	// "Secret team-a/prod-kubeconfig".
	Origin string
	// Labels are those that clusters are selected by.
	Labels map[string]string
	// Properties are other facts, e.g. the region of the cluster.
	Properties map[string]string
	// Owner is the object of the manager's cluster that stands for this one, nil if there is none.
	Owner *metav1.OwnerReference
	// Deleting says that this object is being deleted.
	Deleting bool
}

// Sink takes what a source finds, by the source's own names. Its methods never block, and may
// be called before the Provider starts, in parallel, and with what is known already.
type Sink struct {
	to     receiver
	source Source
	place  int // of the source: the lower it is, the earlier it was named
}

// receiver has the functions of a Provider that take reports of sources.
type receiver struct {
	found func(reporter, Member)
	gone  func(reporter)
	whole func(Source) // all of a source was found
}

// Set reports a cluster, or a change of it.
func (s Sink) Set(cluster multicluster.ClusterName, m Member) {
	s.to.found(reporter{s, cluster}, m)
}

// Remove reports that a cluster is gone, or out of scope: its connection is
// closed without a request to it.
func (s Sink) Remove(cluster multicluster.ClusterName) {
	s.to.gone(reporter{s, cluster})
}

// Synced reports that all there is was set: what isn't known by now is gone. A source that
// can't tell doesn't call it.
func (s Sink) Synced() { s.to.whole(s.source) }

// Source discovers clusters.
type Source interface {
	// Name tells the source from the others of a Provider, which knows a cluster as
	// "<Name>#<name>". If it is empty, the source's names stay as they are: that suits one
	// source whose names have no "#".
	Name() string
	// SetupWithManager registers what the source runs, before the manager
	// starts. From then on the source reports to the sink.
	SetupWithManager(manager.Manager, Sink) error
	// Refresh asks the source to read the credentials of a cluster again soon,
	// past any cache, because the server doesn't accept the known ones, or because
	// they expire. It never blocks.
	Refresh(multicluster.ClusterName)
}

// separator stands between the name of a source and that of a cluster, as in
// multicluster-runtime's providers/multi.
const separator = "#"

// NameOf returns the name by which a Provider knows a cluster of a source.
func NameOf(source string, cluster multicluster.ClusterName) multicluster.ClusterName {
	if source == "" {
		return cluster
	}
	return multicluster.ClusterName(source) + separator + cluster
}

// reporter is who reports a cluster, by the source's own name of it.
type reporter struct {
	Sink
	name multicluster.ClusterName
}
