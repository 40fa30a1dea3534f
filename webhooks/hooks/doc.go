// SPDX-License-Identifier: Apache-2.0

// Package hooks answers Cluster API's runtime hooks: whether an upgrade of a Cluster's Kubernetes
// may go on. The answer is in the status of the ClusterAddon, so a call starts nothing, and it
// doesn't matter who calls.
package hooks
