// SPDX-License-Identifier: Apache-2.0

// Package source gets charts, and other artifacts, from where a reference says they are.
//
// [Sources.Resolve] says which content a reference means now, as a digest. [Sources.Fetch]
// gets the content with the digest. Both ask a source once for all callers (package
// outcome), as whoever the reference lets them (package auth). A kind of source is a
// [backend] (packages oci, helm, github and web), a directory of this machine (package
// local), or an object of the management cluster (package object).
//
// What was downloaded is kept on disk by address, credentials and digest (package store).
// It is hostile: worker processes open it (package opener).
package source
