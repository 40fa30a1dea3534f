// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// bundleWith is the CA bundle that trusts this authority. The certificates that were in
// the bundle before stay for as long as something signed by them can be in use: until
// overlap after the authority was made.
func bundleWith(ca *x509.Certificate, before []byte, now time.Time, overlap time.Duration) ([]byte, error) {
	trusted := []*x509.Certificate{ca}
	if now.Before(ca.NotBefore.Add(overlap)) {
		others, err := cert.ParseCertsPEM(before)
		if err != nil {
			others = nil // a placeholder, or nothing at all
		}
		for _, other := range others {
			if now.Before(other.NotAfter) && !slices.ContainsFunc(trusted, other.Equal) {
				trusted = append(trusted, other)
			}
		}
	}
	bundle, err := cert.EncodeCertificates(trusted...)
	return bundle, err
}
