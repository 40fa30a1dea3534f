// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
)

// Authority signs certificates for servers on 127.0.0.1, and for their clients.
type Authority struct {
	// PEM is the authority's own certificate.
	PEM []byte

	authority *pki.Authority
}

// NewAuthority makes an authority that nothing trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	authority, err := pki.NewAuthority("registry")
	must.Succeed(t, err)
	return &Authority{PEM: authority.Certificate, authority: authority}
}

// Issue makes a certificate and its key, in PEM.
func (a *Authority) Issue(t testing.TB) (certificate, key []byte) {
	t.Helper()
	pair, err := a.authority.Server("registry")
	must.Succeed(t, err)
	return pair.Certificate, pair.Key
}

// trust is a client's configuration that trusts the authority, if there is one.
func trust(t testing.TB, authority []byte) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			t.Fatal("the authority is no certificate")
		}
	}
	return config
}
