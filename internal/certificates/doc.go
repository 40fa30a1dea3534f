// SPDX-License-Identifier: Apache-2.0

// Package certificates makes and renews the certificate that the webhooks are served
// with, for management clusters without cert-manager.
//
// The authority is in one Secret, which all replicas share. Each replica signs a
// certificate for itself, whose key never leaves the process. Both come from
// cert-manager's own library. This package adds the order of things. A replica that
// signs with a new authority first tells the API server to trust it, beside the old
// one. Only after that does it serve with the new certificate. See
// docs/design/certificates.md.
package certificates
