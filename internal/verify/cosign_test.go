// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/signing"
)

const (
	ours   = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	theirs = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

	subject = "https://github.com/demo/charts/.github/workflows/release.yaml@refs/tags/v1"
	issuer  = "https://token.actions.githubusercontent.com"
)

func parsedKey(t testing.TB, key signing.Key) PublicKey {
	t.Helper()
	parsed, err := ParsePublicKey(key.Public)
	must.Succeed(t, err)
	return parsed
}

// expectFlaw expects one whose text has all parts; none means that it counts.
func expectFlaw(t testing.TB, err error, part string) {
	t.Helper()
	flaw, ok := errors.AsType[*failure.Error](err)
	switch {
	case part == "" && err != nil:
		t.Errorf("it doesn't count: %v", err)
	case part == "":
	case !ok || flaw.Reason != failure.SignatureInvalid || !strings.Contains(flaw.Error(), part):
		t.Errorf("got %v, want a flaw with %q", err, part)
	}
}

func TestSignatureWithAKey(t *testing.T) {
	for kind, key := range map[string]signing.Key{
		"ECDSA": signing.NewKey(t), "RSA": signing.NewRSAKey(t, 2048), "Ed25519": signing.NewEd25519Key(t),
	} {
		t.Run(kind, func(t *testing.T) {
			wanted := &Cosign{Keys: []PublicKey{parsedKey(t, signing.NewKey(t)), parsedKey(t, key)}}
			check := func(name string, change func(*Signature), flaw string) {
				t.Helper()
				t.Run(name, func(t *testing.T) {
					signed := Signature(key.Sign(t, ours))
					change(&signed)
					expectFlaw(t, wanted.VerifySignature(ours, signed), flaw)
				})
			}
			check("good", func(*Signature) {}, "")
			check("other key", func(s *Signature) { *s = Signature(signing.NewKey(t).Sign(t, ours)) }, "made with another key")
			check("of another artifact", func(s *Signature) { *s = Signature(key.Sign(t, theirs)) }, "it is of another artifact, \""+theirs)
			check("moved to our payload", func(s *Signature) { s.Annotations = key.Sign(t, theirs).Annotations }, "made with another key, or damaged")
			check("changed payload", func(s *Signature) { s.Payload = append(s.Payload, ' ') }, "damaged")
			check("other type", func(s *Signature) {
				*s = Signature(key.SignText(t, []byte(`{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":"`+ours+`"}}}`)))
			}, `a text of type "atomic container signature"`)
			check("no JSON", func(s *Signature) { *s = Signature(key.SignText(t, []byte("yes"))) }, "isn't cosign's")
			check("no signature", func(s *Signature) { s.Annotations = nil }, "no signature in its annotations")
			check("no base64", func(s *Signature) { s.Annotations = map[string]string{annotationSignature: "%"} }, "no signature in its annotations")
			check("an empty signature", func(s *Signature) { s.Annotations = map[string]string{annotationSignature: ""} }, "no signature in its annotations")
		})
	}
}

func TestBundleWithAKey(t *testing.T) {
	manifest := []byte(`{"schemaVersion":2}`)
	digest := "sha256:" + hexSum(manifest)
	for kind, key := range map[string]signing.Key{
		"ECDSA": signing.NewKey(t), "RSA": signing.NewRSAKey(t, 3072), "Ed25519": signing.NewEd25519Key(t),
	} {
		t.Run(kind, func(t *testing.T) {
			wanted := &Cosign{Keys: []PublicKey{parsedKey(t, signing.NewKey(t)), parsedKey(t, key)}}
			for name, c := range map[string]struct {
				bundle []byte
				flaw   string
			}{
				"good":              {key.Bundle(t, digest, SignaturePredicate), ""},
				"of something else": {key.Bundle(t, theirs, SignaturePredicate), "it is of another artifact"},
				"other key":         {signing.NewKey(t).Bundle(t, digest, SignaturePredicate), "made with another key"},
				"other statement":   {key.Bundle(t, digest, "https://cosign.sigstore.dev/attestation/vuln/v1"), "no signature but a statement of type"},
				"certificate":       {signing.NewAuthority(t).Bundle(t, digest, SignaturePredicate, signing.Certified{Subject: subject, Issuer: issuer}), "not with one of the keys"},
				"garbage":           {[]byte("{]"), "no Sigstore bundle"},
				"empty":             {nil, "no Sigstore bundle"},
			} {
				t.Run(name, func(t *testing.T) { expectFlaw(t, wanted.VerifyBundle(manifest, c.bundle), c.flaw) })
			}
		})
	}
}

func TestKeyless(t *testing.T) {
	manifest := []byte(`{"schemaVersion":2}`)
	digest := "sha256:" + hexSum(manifest)
	authority := signing.NewAuthority(t)
	all := signing.Trust{Log: true, Timestamps: true}
	exact := []Identity{{Issuer: issuer, Subject: subject}}
	matched := func(expression string) []Identity { return []Identity{{Issuer: issuer, SubjectRegExp: expression}} }
	us := signing.Certified{Subject: subject, Issuer: issuer}

	for name, c := range map[string]struct {
		by         *signing.Authority
		how        signing.Certified
		trust      signing.Trust
		identities []Identity
		of         string
		flaw       string
	}{
		"good":                  {how: us},
		"good, one of several":  {how: us, identities: []Identity{{Issuer: issuer, Subject: "someone"}, exact[0]}},
		"good, by pattern":      {how: us, identities: matched(`https://github[.]com/demo/.*`)},
		"good, only logged":     {how: signing.Certified{Subject: subject, Issuer: issuer, Untimed: true}, trust: signing.Trust{Log: true}},
		"good, only timed":      {how: signing.Certified{Subject: subject, Issuer: issuer, Unlogged: true}, trust: signing.Trust{Timestamps: true}},
		"not in the log":        {how: signing.Certified{Subject: subject, Issuer: issuer, Unlogged: true}, flaw: "doesn't count"},
		"pattern in the middle": {how: us, identities: matched(`github[.]com/demo`), flaw: "it is by \"https://github.com/demo/charts"},
		"pattern of one line":   {how: us, identities: matched(`(?m)^https://github[.]com/demo$`), flaw: "it is by"},
		"pattern with a choice": {how: us, identities: matched(`x|https`), flaw: "it is by"},
		"other subject":         {how: signing.Certified{Subject: "eve@example.org", Issuer: issuer}, flaw: `it is by "eve@example.org" of issuer "` + issuer},
		"other issuer":          {how: signing.Certified{Subject: subject, Issuer: "https://eve.example.org"}, flaw: `of issuer "https://eve.example.org"`},
		"other authority":       {by: signing.NewAuthority(t), how: us, flaw: "doesn't count"},
		"other authority, timed": {by: signing.NewAuthority(t), how: us, trust: signing.Trust{Timestamps: true},
			flaw: "doesn't count"},
		"nobody says when": {how: signing.Certified{Subject: subject, Issuer: issuer, Unlogged: true, Untimed: true}, trust: signing.Trust{Timestamps: true},
			flaw: "doesn't count"},
		"after the certificate": {how: signing.Certified{Subject: subject, Issuer: issuer, LoggedAt: time.Now().Add(50 * time.Minute)}, flaw: "doesn't count"},
		"no certificate log":    {how: us, trust: signing.Trust{Log: true, Timestamps: true, CertificateLog: true}, flaw: "doesn't count"},
		"of something else":     {how: us, of: theirs, flaw: "of"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.by == nil {
				c.by = authority
			}
			if c.trust == (signing.Trust{}) {
				c.trust = all
			}
			if c.identities == nil {
				c.identities = exact
			}
			if c.of == "" {
				c.of = digest
			}
			trusted, err := ParseTrustRoot(authority.TrustRoot(t, c.trust))
			must.Succeed(t, err)
			keyless, err := NewKeyless(c.identities, trusted)
			must.Succeed(t, err)
			wanted := &Cosign{Keyless: keyless}
			t.Run("bundle", func(t *testing.T) {
				expectFlaw(t, wanted.VerifyBundle(manifest, c.by.Bundle(t, c.of, SignaturePredicate, c.how)), c.flaw)
			})
			t.Run("layer", func(t *testing.T) {
				expectFlaw(t, wanted.VerifySignature(digest, Signature(c.by.Sign(t, c.of, c.how))), c.flaw)
			})
		})
	}

	trusted, err := ParseTrustRoot(authority.TrustRoot(t, all))
	must.Succeed(t, err)
	keyless, err := NewKeyless(exact, trusted)
	must.Succeed(t, err)
	wanted := &Cosign{Keyless: keyless}
	t.Run("another statement", func(t *testing.T) {
		expectFlaw(t, wanted.VerifyBundle(manifest, authority.Bundle(t, digest, "https://slsa.dev/provenance/v1", us)), "no signature but a statement")
	})
	t.Run("with a key", func(t *testing.T) {
		expectFlaw(t, wanted.VerifyBundle(manifest, signing.NewKey(t).Bundle(t, digest, SignaturePredicate)), "isn't made with a certificate")
		expectFlaw(t, wanted.VerifySignature(digest, Signature(signing.NewKey(t).Sign(t, digest))), "isn't made with a certificate")
	})
	t.Run("signature of another payload", func(t *testing.T) {
		signed := Signature(authority.Sign(t, theirs, us))
		signed.Payload = signing.Payload(digest)
		expectFlaw(t, wanted.VerifySignature(digest, signed), "doesn't count")
	})
	t.Run("either a key or a certificate will do", func(t *testing.T) {
		key := signing.NewKey(t)
		either := &Cosign{Keys: []PublicKey{parsedKey(t, key)}, Keyless: keyless}
		expectFlaw(t, either.VerifyBundle(manifest, key.Bundle(t, digest, SignaturePredicate)), "")
		expectFlaw(t, either.VerifyBundle(manifest, authority.Bundle(t, digest, SignaturePredicate, us)), "")
		expectFlaw(t, either.VerifySignature(digest, Signature(key.Sign(t, digest))), "")
		expectFlaw(t, either.VerifySignature(digest, Signature(authority.Sign(t, digest, us))), "")
	})
	for name, change := range map[string]func(*Signature){
		"certificate": func(s *Signature) { s.Annotations[annotationCertificate] = "x" },
		"log entry":   func(s *Signature) { s.Annotations[annotationLogEntry] = "{}" },
		"log no JSON": func(s *Signature) { s.Annotations[annotationLogEntry] = "[" },
		"timestamp":   func(s *Signature) { s.Annotations[annotationTimestamp] = `{"SignedRFC3161Timestamp": "eA=="}` },
		"time type":   func(s *Signature) { s.Annotations[annotationTimestamp] = `7` },
	} {
		t.Run("garbage in "+name, func(t *testing.T) {
			signed := Signature(authority.Sign(t, digest, signing.Certified{Subject: subject, Issuer: issuer, Unlogged: true}))
			change(&signed)
			if err := wanted.VerifySignature(digest, signed); err == nil {
				t.Error("it counts")
			}
		})
	}
}

func TestWhatCantBeTrusted(t *testing.T) {
	authority := signing.NewAuthority(t)
	key := func(data []byte) error { _, err := ParsePublicKey(data); return err }
	root := func(data []byte) error { _, err := ParseTrustRoot(data); return err }
	keyring := func(data string) error { _, err := ParseKeyring([]byte(data)); return err }
	keyless := func(identities ...Identity) error {
		trusted, err := ParseTrustRoot(authority.TrustRoot(t, signing.Trust{Log: true}))
		must.Succeed(t, err)
		_, err = NewKeyless(identities, trusted)
		return err
	}
	for name, err := range map[string]error{
		"no PEM":          key([]byte("ssh-ed25519 AAAA")),
		"private key":     key([]byte("-----BEGIN PRIVATE KEY-----\neA==\n-----END PRIVATE KEY-----\n")),
		"damaged":         key([]byte("-----BEGIN PUBLIC KEY-----\neA==\n-----END PUBLIC KEY-----\n")),
		"weak":            key(signing.NewRSAKey(t, 1024).Public),
		"two":             key(append(signing.NewKey(t).Public, signing.NewKey(t).Public...)),
		"large":           key(make([]byte, MaxPublicKey+1)),
		"root no JSON":    root([]byte("x")),
		"root empty":      root([]byte("{}")),
		"root large":      root(make([]byte, 1<<20)),
		"root of nothing": root([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`)),
		"root timeless":   root(authority.TrustRoot(t, signing.Trust{})),
		"keyring":         keyring("x"),
		"keyring armored": keyring("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nx\n"),
		"keyring empty":   keyring(""),
		"expression":      keyless(Identity{Issuer: issuer, SubjectRegExp: "("}),
		"nobody":          keyless(),
	} {
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
