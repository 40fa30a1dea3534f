// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds Chandler's API, group addons.cluster.x-k8s.io, in its
// hub and storage version.
//
// People write AddonStacks: these add-ons, at these versions, on these
// clusters. Chandler writes one ClusterAddon for each Cluster, which people
// only read.
//
// An API server evaluates all rules of an AddonStack at each write of it, of its
// status too, and each look at a field takes it the longer the more fields its type
// has. So Addon and ChartSource have one rule each that looks at a field once: its messageExpression
// says what is wrong, or nothing, and the rule is that it says nothing. That of ChartSource begins
// with a shorter one for what is usual.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1beta1
