// SPDX-License-Identifier: Apache-2.0

// Package certificates makes and renews the certificate that the webhooks are served
// with, for management clusters without cert-manager.
//
// The authority is in one Secret, which all replicas share. Each replica signs a
// certificate for itself, whose key never leaves the process. Both come from
// cert-manager's own library. What this package adds is the order of things: whoever
// signs with a new authority first tells the API server to trust it, beside the old
// one, and serves with the new certificate only after that. See
// docs/design/certificates.md.
package certificates
