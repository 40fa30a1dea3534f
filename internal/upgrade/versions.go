// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

// compare orders two versions of Kubernetes. A text that is no version comes first.
func compare(a, b string) int {
	left, err := kubeversion.Parse(a)
	right, other := kubeversion.Parse(b)
	switch {
	case err != nil && other != nil:
		return cmp.Compare(a, b)
	case err != nil:
		return -1
	case other != nil:
		return 1
	}
	return cmp.Or(left.Compare(right), cmp.Compare(left.Metadata(), right.Metadata()))
}

// hasMinor reports whether a version is of the same minor version as another, or of a later one.
func hasMinor(version, least string) bool {
	v, err := kubeversion.Parse(version)
	w, other := kubeversion.Parse(least)
	if err != nil || other != nil {
		return true // nobody can tell
	}
	return cmp.Or(cmp.Compare(v.Major(), w.Major()), cmp.Compare(v.Minor(), w.Minor())) >= 0
}

// SameMinor reports whether two versions have the same major and minor number.
func SameMinor(a, b string) bool { return hasMinor(a, b) && hasMinor(b, a) }

// isOf reports whether a provider's version, as v1.34.2-eks-1 or v1.34, may mean v1.34.2.
func isOf(reported, version string) bool {
	v, err := kubeversion.Parse(reported)
	w, other := kubeversion.Parse(version)
	switch {
	case err != nil || other != nil:
		return false
	case strings.Count(reported, ".") < 2:
		return v.Major() == w.Major() && v.Minor() == w.Minor()
	}
	bare := w.Prerelease() == "" && w.Metadata() == ""
	return v.Major() == w.Major() && v.Minor() == w.Minor() && v.Patch() == w.Patch() &&
		(bare || v.Prerelease() == w.Prerelease() && v.Metadata() == w.Metadata())
}

// only returns the version that all are; "" if there are several, or none.
func only(versions []string) string {
	if len(versions) == 0 || slices.ContainsFunc(versions, func(v string) bool { return v != versions[0] }) {
		return ""
	}
	return versions[0]
}

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

// ClusterOf returns what is seen of a Cluster. api is the version of its API server, "" if that doesn't
// answer. Cluster API tells the versions since 1.14; before, api is that of the control plane.
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
