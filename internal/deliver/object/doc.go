// SPDX-License-Identifier: Apache-2.0

// Package object has the facts that are known of a single object of an add-on: its owner, and its place in the order
// and in the cluster. It tells whether the add-on may apply the object, and the meaning of errors about it. Nothing here
// asks the cluster for more than its kinds.
package object
