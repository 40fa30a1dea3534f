// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/signing"
)

func TestSignedCharts(t *testing.T) {
	w := startSigned(t)
	us := signing.Certified{Subject: workflow, Issuer: actions}
	layer := func(sign func(digest string) signing.Layer) func(*testing.T, string, string) {
		return func(t *testing.T, name, digest string) {
			t.Helper()
			signing.Attach(t, w.repository(t, name), digest, sign(digest))
		}
	}
	bundle := func(sign func(digest string) []byte) func(*testing.T, string, string) {
		return func(t *testing.T, name, digest string) {
			t.Helper()
			signing.Refer(t, w.repository(t, name), digest, sign(digest))
		}
	}
	byKey := func(digest string) signing.Layer { return w.key.Sign(t, digest) }
	other := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		sign   func(t *testing.T, name, digest string)
		verify *addonsv1.Verification
		reason string
	}{
		"layer-by-key":    {sign: layer(byKey), verify: byKeys("cosign.pub")},
		"default-key":     {sign: layer(byKey), verify: byKeys("")},
		"one-of-two-keys": {sign: layer(byKey), verify: byKeys("other.pub", "cosign.pub")},
		"bundle-by-key":   {sign: bundle(func(d string) []byte { return w.key.Bundle(t, d, signing.SignaturePredicate) }), verify: byKeys("cosign.pub")},
		"layer-keyless":   {sign: layer(func(d string) signing.Layer { return w.authority.Sign(t, d, us) }), verify: byIdentity(actions, workflow)},
		"bundle-keyless":  {sign: bundle(func(d string) []byte { return w.authority.Bundle(t, d, signing.SignaturePredicate, us) }), verify: byIdentity(actions, workflow)},
		"after-others": {sign: func(t *testing.T, n, d string) {
			signing.Attach(t, w.repository(t, n), d, signing.NewKey(t).Sign(t, d), w.key.Sign(t, d), w.key.Sign(t, "sha256:"+other))
		}, verify: byKeys("")},
		"bundle-of-others": {sign: func(t *testing.T, n, d string) {
			for _, b := range [][]byte{w.key.Bundle(t, d, "https://slsa.dev/provenance/v1"), signing.NewKey(t).Bundle(t, d, signing.SignaturePredicate), w.key.Bundle(t, d, signing.SignaturePredicate)} {
				signing.Refer(t, w.repository(t, n), d, b)
			}
		}, verify: byKeys("")},

		"unsigned":  {verify: byKeys("cosign.pub"), reason: failure.SignatureMissing},
		"other-key": {sign: layer(byKey), verify: byKeys("other.pub"), reason: failure.SignatureInvalid},
		"other-artifact": {sign: layer(func(string) signing.Layer { return w.key.Sign(t, "sha256:"+other) }), verify: byKeys(""),
			reason: failure.SignatureInvalid},
		"only-statements": {sign: bundle(func(d string) []byte { return w.key.Bundle(t, d, "https://slsa.dev/provenance/v1") }), verify: byKeys(""),
			reason: failure.SignatureInvalid},
		"other-subject": {sign: layer(func(d string) signing.Layer { return w.authority.Sign(t, d, us) }), verify: byIdentity(actions, "someone@example.org"),
			reason: failure.SignatureInvalid},
		"unlogged": {sign: bundle(func(d string) []byte {
			return w.authority.Bundle(t, d, signing.SignaturePredicate, signing.Certified{Subject: workflow, Issuer: actions, Unlogged: true, Untimed: true})
		}), verify: byIdentity(actions, workflow), reason: failure.SignatureInvalid},
		"garbage-bundle": {sign: bundle(func(string) []byte { return []byte("garbage") }), verify: byKeys(""), reason: failure.SignatureInvalid},
		"large-bundle":   {sign: bundle(func(string) []byte { return make([]byte, 1<<20+1) }), verify: byKeys(""), reason: failure.SignatureInvalid},
		"large-layer": {sign: layer(func(string) signing.Layer { return signing.Layer{Payload: make([]byte, 64<<10+1)} }), verify: byKeys(""),
			reason: failure.SignatureInvalid},
		"no-layers": {sign: func(t *testing.T, n, d string) { signing.Attach(t, w.repository(t, n), d) }, verify: byKeys(""), reason: failure.SignatureMissing},

		"no-object": {verify: &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: reference.KindSecret, Name: "gone"}}}},
			reason: failure.VerificationPolicyInvalid},
		"no-key":        {verify: byKeys("cosign.pub", "gone"), reason: failure.VerificationPolicyInvalid},
		"no-pem":        {verify: byKeys("garbage"), reason: failure.VerificationPolicyInvalid},
		"no-keyring":    {verify: byKeyring("garbage"), reason: failure.VerificationPolicyInvalid},
		"no-provenance": {verify: byKeyring(""), reason: failure.SignatureMissing},
	} {
		t.Run(name, func(t *testing.T) {
			digest := w.push(t, name)
			if c.sign != nil {
				c.sign(t, name, digest)
			}
			sources := w.sources(t)
			expectRefused(t, get(t, sources, w.ref(name, c.verify)), c.reason)
			// Who doesn't ask for a signature gets it, and that opens no door to those who do.
			expectFetched(t, sources, w.ref(name, nil))
			expectRefused(t, get(t, sources, w.ref(name, c.verify)), c.reason)
		})
	}
}

// TestCosignIsForRegistries asks nobody: neither for the keys nor for the chart.
func TestCosignIsForRegistries(t *testing.T) {
	sources, _ := remoteSources(t, source.Options{})
	for name, ref := range map[string]reference.Reference{
		"helm": inRepository("https://charts.invalid", "1.0.0"), "github": inRelease("https://git.invalid/o/n", "1.0.0"),
		"an address": atAddress("http://files.invalid/x.tgz", digestOf("x")), "a path": atPath("x.tgz"),
	} {
		t.Run(name, func(t *testing.T) {
			ref.Chart.Verify = byKeys("cosign.pub")
			_, err := sources.Fetch(t.Context(), ref, digestOf("x"))
			if reason := asError(t, err).Reason; reason != failure.VerificationPolicyInvalid && reason != failure.SourceDisabled {
				t.Errorf("got %s: %v", reason, err)
			}
		})
	}
}

// TestRegistriesWithoutReferrers has registries that answer in their own ways what they
// don't know. Signatures are where they are without it; whether there is one is told.
func TestRegistriesWithoutReferrers(t *testing.T) {
	w := startSigned(t)
	digest := w.push(t, "signed")
	signing.Refer(t, w.repository(t, "signed"), digest, w.key.Bundle(t, digest, signing.SignaturePredicate))
	w.push(t, "unsigned")
	for code, known := range map[int]bool{
		http.StatusBadRequest: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusMethodNotAllowed: true,
		http.StatusNotAcceptable: true, http.StatusNotImplemented: true,
		http.StatusTooManyRequests: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.server.Host})
			behind.ErrorLog = quiet
			server := serving(t, func(out http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/referrers/") {
					out.WriteHeader(code)
					return
				}
				behind.ServeHTTP(out, r)
			})
			reasons := map[string]string{"signed": "", "unsigned": failure.SignatureMissing}
			if !known {
				reasons = map[string]string{"signed": failure.SourceUnavailable}
			}
			for name, reason := range reasons {
				ref := w.ref(name, byKeys("cosign.pub"))
				ref.Chart.OCI.URL = "oci://" + hostOf(server) + "/" + name
				expectRefused(t, get(t, w.sources(t), ref), reason)
			}
		})
	}
}
