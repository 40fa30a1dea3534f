// SPDX-License-Identifier: Apache-2.0

// Package upgrade decides what an upgrade of a cluster's Kubernetes means for its add-ons. It says
// which changes wait for a point of the upgrade, and what the upgrade waits for at each point.
//
// It decides from what is seen of the Cluster, never from a call of a runtime hook: such calls
// may be lost, repeated, or never come.
package upgrade
