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
// A new revision goes through these steps, which [installation] lists. The name is that of the step's file:
//
//	begin    render, record the revision with the inventory of old and new objects
//	apply    the CRDs of crds/, until they are established
//	hooks    pre-install, pre-upgrade
//	apply    the objects, in waves
//	ready    until each object is ready by its kind and its checks
//	hooks    post-install, post-upgrade
//	ready    until the postcondition holds, if there is one
//	prune    the objects that the new revision doesn't have
//	ensure   narrow the inventory, mark deployed
//
// Each step is a type above [call], which has the data that all steps need, and knows none of them. The packages below
// know of no revision. These are object (the known facts of one object), apply (writing it), and keep (the objects that
// stay). Package repair brings an object back, observe watches it, and readiness evaluates it. Package record is Helm's
// record of it all.
//
// Pruning comes last, unlike in Helm, which deletes before the post hooks: until the
// revision has shown that it works, nothing of the previous one is lost.
package deliver
