// SPDX-License-Identifier: Apache-2.0

// Package topology runs Cluster API's own core manager, with its webhooks, against a local control plane, and beside it
// a provider whose workload clusters are local control planes, too. So Clusters with a topology are created, upgraded
// and deleted by the code that does it everywhere, and it calls the lifecycle hooks.
//
// The provider has the four kinds that Cluster API asks for: infrastructure cluster, control plane, bootstrap config and
// machine. It does as little as their contracts allow. A control plane has no Machines; a worker is a Node of kwok.
package topology
