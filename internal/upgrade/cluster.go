// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Cluster is what is seen of a Cluster's versions of Kubernetes.
type Cluster struct {
	// Topology is the version that spec.topology asks for, "" without a topology.
	Topology string
	// ControlPlane and Workers are the versions that run there. While machines are replaced there
	// are several. Workers is empty if there are none, or it isn't known.
	ControlPlane, Workers []string
	// Plan are the versions that the control plane is still to be given, the next one first.
	// Empty if Cluster API doesn't tell.
	Plan []string
	// API is the version of the API server that answers; "" if none does.
	API string
	// SkipGates is the version for which the annotation skips all gates; "" for none.
	SkipGates string
	// Generation of the Cluster.
	Generation int64
}

// ClusterOf returns what is seen of a Cluster whose API server has a version, "" if it doesn't
// answer. Cluster API says since 1.14 which versions run. Before that the API server's own is that
// of the control plane, and nothing is known of the workers.
func ClusterOf(cluster *clusterv1.Cluster, api string) Cluster {
	c := Cluster{
		Topology: cluster.Spec.Topology.Version, API: api, Generation: cluster.Generation,
		SkipGates: cluster.Annotations[addonsv1.SkipGatesAnnotation],
	}
	if controlPlane := cluster.Status.ControlPlane; controlPlane != nil {
		c.ControlPlane = versionsOf(controlPlane.Versions, c.Topology)
		for _, planned := range controlPlane.UpgradePlan {
			c.Plan = append(c.Plan, planned.Version)
		}
	}
	if len(c.ControlPlane) == 0 && api != "" {
		c.ControlPlane = []string{api}
		if SameMinor(api, c.Topology) { // vendors call patches as they like
			c.ControlPlane = []string{c.Topology}
		}
	}
	if workers := cluster.Status.Workers; workers != nil {
		c.Workers = versionsOf(workers.Versions, c.Topology)
	}
	return c
}

// versionsOf returns versions by the name that the topology has for them.
func versionsOf(all []clusterv1.StatusVersion, topology string) []string {
	var versions []string
	for _, each := range all {
		if isOf(each.Version, topology) {
			each.Version = topology
		}
		versions = append(versions, each.Version)
	}
	return versions
}
