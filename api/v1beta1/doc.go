// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds Chandler's API, group addons.cluster.x-k8s.io, in its
// hub and storage version.
//
// People write AddonStacks: these add-ons, at these versions, on these
// clusters. Chandler writes one ClusterAddon for each Cluster, which people
// only read.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1beta1
