// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Member is what a source knows about one cluster.
type Member struct {
	// ID tells two clusters of the same name apart, e.g. a UID. When it
	// changes, the old connection is dropped at once.
	ID string
	// Kubeconfig is checked as input that may be hostile. It is empty as long as
	// there is none. A source that fails to read one repeats the last that it has read.
	Kubeconfig []byte
	// Config takes the place of Kubeconfig where the program itself made it, or trusts
	// who did: nothing in it is checked. Nobody changes it afterwards.
	Config *rest.Config
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
	provider *Provider
	source   int // index of the source
}

// Set reports a cluster, or a change of it.
func (s Sink) Set(cluster multicluster.ClusterName, m Member) {
	s.provider.set(s.name(cluster), origin{source: s.source, name: cluster}, m)
}

// Remove reports that a cluster is gone, or out of scope: its connection is
// closed without a request to it.
func (s Sink) Remove(cluster multicluster.ClusterName) { s.provider.remove(s.name(cluster)) }

// Synced reports that all there is was set: what isn't known by now is gone. A source that
// can't tell doesn't call it.
func (s Sink) Synced() { s.provider.sync(s.provider.options.Sources[s.source].Name()) }

func (s Sink) name(cluster multicluster.ClusterName) multicluster.ClusterName {
	return NameOf(s.provider.options.Sources[s.source].Name(), cluster)
}

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

// SetupWithManager registers the sources with the manager of the cluster that the program runs
// for. Call it before that manager starts. A multicluster manager starts the Provider itself.
func (p *Provider) SetupWithManager(mgr manager.Manager) error {
	known := map[string]bool{}
	for _, source := range p.options.Sources {
		if known[source.Name()] {
			return fmt.Errorf("two sources have the name %q", source.Name())
		}
		known[source.Name()] = true
	}
	for i, source := range p.options.Sources {
		if err := source.SetupWithManager(mgr, Sink{provider: p, source: i}); err != nil {
			return fmt.Errorf("setting up the source %q: %w", source.Name(), err)
		}
	}
	return nil
}

// origin is where a link's cluster comes from.
type origin struct {
	source int // index of the source: the lower it is, the earlier it was named
	name   multicluster.ClusterName
}
