// SPDX-License-Identifier: Apache-2.0

// Package pki makes certificates for servers on this host, and for their clients.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime of certificates: longer than any run, and than a machine that sleeps within one.
const lifetime = 7 * 24 * time.Hour

// Pair is a certificate and its key, in PEM.
type Pair struct{ Certificate, Key []byte }

// Authority signs certificates.
type Authority struct {
	Pair

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nothing trusts yet.
func NewAuthority(name string) (*Authority, error) {
	a := &Authority{certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	var err error
	if a.Pair, a.key, err = issue(a.certificate, a.certificate, nil); err != nil {
		return nil, err
	}
	der, _ := pem.Decode(a.Certificate)
	a.certificate, err = x509.ParseCertificate(der.Bytes)
	return a, err
}

// Client issues a certificate by which an API server knows a user and its groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server issues a certificate of a server on loopback, which may be a client, too.
func (a *Authority) Server(name string, dnsNames ...string) (Pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    append([]string{"localhost"}, dnsNames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	pair, _, err := issue(template, a.certificate, a.key)
	return pair, err
}

// issue signs a certificate for a new key: with that, if there is no signer.
func issue(template, authority *x509.Certificate, signer *ecdsa.PrivateKey) (Pair, *ecdsa.PrivateKey, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return Pair{}, nil, err
	}
	if signer == nil {
		signer = key
	}
	now := time.Now()
	template.SerialNumber = big.NewInt(now.UnixNano())
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(lifetime)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	certificate, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("issuing a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return Pair{Certificate: encode("CERTIFICATE", certificate), Key: keyPEM}, key, nil
}

// NewKey makes a key that no certificate is for.
func NewKey() (key *ecdsa.PrivateKey, inPEM []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
