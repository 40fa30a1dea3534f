// SPDX-License-Identifier: Apache-2.0

// Package stack holds what can be said about an AddonStack without asking any
// cluster: whether its spec can be used, which Clusters it selects, in which
// order its add-ons come, and how its revisions are kept.
package stack
