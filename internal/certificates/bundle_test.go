// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// madeAt is an authority that lives for a day.
func madeAt(t *testing.T, begin time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: SecretName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: begin, NotAfter: begin.Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func pem(t *testing.T, certificates ...*x509.Certificate) string {
	t.Helper()
	data, err := cert.EncodeCertificates(certificates...)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBundleWith(t *testing.T) {
	const overlap = time.Hour
	old, other, current := madeAt(t, noon.Add(-16*time.Hour)), madeAt(t, noon.Add(-20*time.Hour)), madeAt(t, noon)
	for name, tc := range map[string]struct {
		before string
		now    time.Time
		want   string
	}{
		"nothing before":                      {now: noon, want: pem(t, current)},
		"a placeholder before":                {before: "\n", now: noon, want: pem(t, current)},
		"garbage before":                      {before: "garbage", now: noon, want: pem(t, current)},
		"the old one stays trusted":           {before: pem(t, old), now: noon.Add(time.Minute), want: pem(t, current, old)},
		"and so do two":                       {before: pem(t, old, other), now: noon.Add(time.Minute), want: pem(t, current, old, other)},
		"until nothing of theirs is in use":   {before: pem(t, current, old), now: noon.Add(overlap), want: pem(t, current)},
		"or until they have expired":          {before: pem(t, madeAt(t, noon.Add(-24*time.Hour).Add(time.Minute))), now: noon.Add(2 * time.Minute), want: pem(t, current)},
		"nothing changes where it is in":      {before: pem(t, current, old), now: noon.Add(time.Minute), want: pem(t, current, old)},
		"a second look at the newest is one":  {before: pem(t, old, current), now: noon.Add(time.Minute), want: pem(t, current, old)},
		"an authority from a clock ahead too": {before: pem(t, old), now: noon.Add(-time.Minute), want: pem(t, current, old)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			bundle, err := bundleWith(current, []byte(tc.before), tc.now, overlap)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(bundle)).To(Equal(tc.want))
			again, err := bundleWith(current, bundle, tc.now, overlap)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(bundle), "a bundle that is right isn't written again")
		})
	}
}

func TestCheckLifetimes(t *testing.T) {
	for name, tc := range map[string]struct {
		certificate, authority time.Duration
		says                   string
	}{
		"the defaults":                    {certificate: 7 * 24 * time.Hour, authority: 365 * 24 * time.Hour},
		"the shortest":                    {certificate: 5 * time.Second, authority: time.Minute},
		"no time to renew":                {certificate: time.Second, authority: time.Hour, says: "at least 5s"},
		"no time to renew the authority":  {certificate: 5 * time.Second, authority: 30 * time.Second, says: "at least 1m0s"},
		"an authority that dies too soon": {certificate: time.Hour, authority: 2 * time.Hour, says: "which is 3h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckLifetimes(tc.certificate, tc.authority)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			}
		})
	}
}
