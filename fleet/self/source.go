// SPDX-License-Identifier: Apache-2.0

// Package self has the cluster that the manager itself runs for as a member of the fleet.
package self

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

// Name is the name of the source, and Cluster that of its one cluster in it.
const (
	Name    = "self"
	Cluster = multicluster.ClusterName("local")
)

// Source reports the cluster of the manager, with the manager's own credentials.
type Source struct {
	// Labels that the cluster is selected by.
	Labels map[string]string
}

// Name implements fleet.Source.
func (Source) Name() string { return Name }

// SetupWithManager implements fleet.Source.
func (s Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	sink.Set(Cluster, fleet.Member{
		ID:     "self",
		Config: mgr.GetConfig(),
		Origin: "the configuration of this manager",
		Labels: s.Labels,
		// It is the program's own, and no more hostile than the manager's cache takes it to be.
		Unlimited: true,
	})
	sink.Synced()
	return nil
}

// Refresh implements fleet.Source. Client-go follows a token file by itself.
func (Source) Refresh(multicluster.ClusterName) {}
