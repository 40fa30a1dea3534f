// SPDX-License-Identifier: Apache-2.0

// Package object has what is known of a single object of an add-on: whose it is, whether the add-on may apply it, in
// which order, where it is in the cluster, and what an error about it means. Nothing here asks the cluster for more
// than its kinds.
package object
