// SPDX-License-Identifier: Apache-2.0

// Package verify decides whether a signature makes an artifact trusted. It asks
// nobody: neither a registry nor a transparency log, nor the API server. Who calls
// it brings the signatures and whom to trust.
//
// What it is given of signatures is hostile. Nothing of a signed text is looked
// into before its signature was found good, and nothing is trusted that a signature
// doesn't cover.
package verify
