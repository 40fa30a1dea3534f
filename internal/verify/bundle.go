// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
)

// BundleType is the media type of a Sigstore bundle.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// SignaturePredicate is the type of the statement that cosign signs. The same
// signer makes statements of other types of an artifact, too: a list of its parts,
// or that it failed a test. Those approve of nothing.
const SignaturePredicate = "https://sigstore.dev/cosign/sign/v1"

// VerifyBundle checks that somebody who counts signed the manifest. A bundle that
// doesn't say so is a [Flaw].
func (c *Cosign) VerifyBundle(manifest, data []byte) error {
	signed := &bundle.Bundle{}
	if err := signed.UnmarshalJSON(data); err != nil {
		return flaw("it is no Sigstore bundle")
	}
	content, err := signed.SignatureContent()
	if err != nil || content.EnvelopeContent() == nil {
		return flaw("its bundle has no statement of what is signed")
	}
	material, err := signed.VerificationContent()
	if err != nil {
		return flaw("its bundle doesn't say who signed")
	}
	switch {
	case material.Certificate() == nil:
		err = c.byKey(signed, manifest)
	case c.Keyless == nil:
		err = flaw("it is made with a certificate, not with one of the keys")
	default:
		err = c.Keyless.check(signed, verify.WithArtifact(bytes.NewReader(manifest)))
	}
	if err != nil {
		return err
	}
	statement, err := content.EnvelopeContent().Statement()
	switch {
	case err != nil:
		return flaw("its bundle has no statement of what is signed")
	case statement.GetPredicateType() != SignaturePredicate:
		return flaw("it is no signature but a statement of type %s", quote(statement.GetPredicateType()))
	}
	return nil
}

func (c *Cosign) byKey(signed verify.SignedEntity, manifest []byte) error {
	if len(c.Keys) == 0 {
		return flaw("it isn't made with a certificate")
	}
	known := false
	for _, key := range c.Keys {
		for _, verifier := range key.verifiers {
			if checkWith(verifier, signed, verify.WithArtifact(bytes.NewReader(manifest))) == nil {
				return nil
			}
			known = known || checkWith(verifier, signed, verify.WithoutArtifactUnsafe()) == nil
		}
	}
	if known {
		return flaw("it is of another artifact")
	}
	return flaw("it is made with another key, or damaged")
}

// checkWith verifies a bundle with a key. The hint that the bundle has of its key
// is nothing to go by.
func checkWith(verifier signature.Verifier, signed verify.SignedEntity, artifact verify.ArtifactPolicyOption) error {
	key := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
	checker, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		return err
	}
	_, err = checker.Verify(signed, verify.NewPolicy(artifact, verify.WithKey()))
	return err
}
