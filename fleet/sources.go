// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

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
		if err := source.SetupWithManager(mgr, sourceSink{provider: p, index: i}); err != nil {
			return fmt.Errorf("setting up the source %q: %w", source.Name(), err)
		}
	}
	return nil
}

// sourceSink is the Sink of one source.
type sourceSink struct {
	provider *Provider
	index    int
}

func (s sourceSink) name(cluster multicluster.ClusterName) multicluster.ClusterName {
	return NameOf(s.provider.options.Sources[s.index].Name(), cluster)
}

// Set implements Sink.
func (s sourceSink) Set(cluster multicluster.ClusterName, m Member) {
	s.provider.set(s.name(cluster), origin{source: s.index, name: cluster}, m)
}

// Remove implements Sink.
func (s sourceSink) Remove(cluster multicluster.ClusterName) { s.provider.remove(s.name(cluster)) }

// Synced implements Sink.
func (s sourceSink) Synced() { s.provider.sync(s.provider.options.Sources[s.index].Name()) }

// origin is where a link's cluster comes from.
type origin struct {
	source int // index of the source: the lower it is, the earlier it was named
	name   multicluster.ClusterName
}
