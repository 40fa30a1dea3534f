// SPDX-License-Identifier: Apache-2.0

// Package clusterctl tests Chandler's release with the real clusterctl, built from Cluster API's source. It tests
// how the release is installed, upgraded and deleted, and how Clusters with their add-ons move between management
// clusters.
//
// Nothing is fetched from anywhere but the Go module proxy. clusterctl's repositories are folders. They are made of this
// checkout, of Cluster API's own configuration, and of an infrastructure provider that is a CRD and nothing else.
// Nothing runs in the pods of the management clusters (kwok says that they are ready); Chandler runs beside them, as
// processes.
package clusterctl
