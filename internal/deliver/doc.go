// SPDX-License-Identifier: Apache-2.0

// Package deliver brings add-ons into a workload cluster: from rendered objects
// to an add-on that is installed and ready, and out again.
//
// Ensure and Remove take one add-on as far as it can go now, and return. They never wait: objects
// that have to become ready, or be gone, are watched (package observe), and Options.Notify asks for
// the next call. Where an add-on stands is derived again on each call from its release records in
// the cluster (package record), so that a crash at any point loses nothing. The data in memory only
// saves work.
//
// A new revision goes through these steps, which the method advance lists. The name is that of the step's package:
//
//	revision  render, record the revision with the inventory of old and new objects
//	install   the CRDs of crds/, until they are established
//	hooks     pre-install, pre-upgrade
//	install   the objects, in waves
//	ready     until each object is ready by its kind and its checks
//	hooks     post-install, post-upgrade
//	ready     until the postcondition holds, if there is one
//	prune     the objects that the new revision doesn't have
//
// Then the inventory is narrowed, and the revision marked deployed. Each step has inputs of its own, knows nothing of the call, and
// returns why it isn't done (package outcome). The call makes the add-on's outcome of that. Package keep and [object.Claimant] decide
// which objects are the add-on's, and which stay: packages prune and claim write by that.
//
// Pruning comes last, unlike in Helm, which deletes before the post hooks: until the
// revision has shown that it works, nothing of the previous one is lost.
package deliver
