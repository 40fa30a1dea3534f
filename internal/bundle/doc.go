// SPDX-License-Identifier: Apache-2.0

// Package bundle makes the add-ons of a stack from its bundle (spec.source).
//
// Charts of a bundle get their digests, so that one which is the same in the next
// bundle isn't applied again ([Expand]). A stack without add-ons of its own gets those
// of the Cluster Stack release that its bundle has to be.
//
// It reads no source: callers hand it the bundle's files.
package bundle
