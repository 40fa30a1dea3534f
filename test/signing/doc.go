// SPDX-License-Identifier: Apache-2.0

// Package signing signs artifacts for tests, as cosign and Helm do, with keys and
// authorities that are made on the spot.
package signing
