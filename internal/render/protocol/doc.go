// SPDX-License-Identifier: Apache-2.0

// Package protocol is how the manager and a render worker talk: requests and responses in CBOR, in frames over two pipes.
package protocol
