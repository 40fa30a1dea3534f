// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts real Kubernetes control planes as plain processes on this machine: etcd and
// kube-apiserver. Where asked it also starts kube-controller-manager, kube-scheduler and kwok. They make the cluster
// behave as one with nodes does: Deployments become available, Jobs complete, owned objects are garbage-collected,
// namespaces go away. Tests, benchmarks and the demo use it, for management and for workload clusters.
//
// The binaries come from KUBEBUILDER_ASSETS or are built once from Go modules; see hack/controlplane.
//
// Whatever is started also ends: with Stop, with a failed Start, and when this process dies in any way.
package controlplane
