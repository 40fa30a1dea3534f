// SPDX-License-Identifier: Apache-2.0

// Package verify decides whether a signature makes an artifact trusted. It asks
// nobody: neither a registry nor a transparency log, nor the API server. The caller brings the
// signatures and says whom to trust.
//
// The signatures that it is given are hostile. Nothing of a signed text is looked into before its
// signature was found good, and nothing is trusted that a signature doesn't cover.
package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// Cosign says whose signatures, made with cosign, count. A single signature is enough.
type Cosign struct {
	Keys    []PublicKey
	Keyless *Keyless // nil: signatures with certificates don't count
}

// String says who is wanted.
func (c *Cosign) String() string {
	var wanted []string
	for _, key := range c.Keys {
		wanted = append(wanted, fmt.Sprintf("the key with SHA-256 %s...", key.Fingerprint[:16]))
	}
	if c.Keyless != nil {
		for _, identity := range c.Keyless.identities {
			wanted = append(wanted, identity.String())
		}
	}
	return strings.Join(wanted, ", or ")
}

// Signature is one as cosign keeps it in a layer of the tag sha256-<hex>.sig.
type Signature struct {
	// Payload is the layer: a text that names what is signed.
	Payload []byte
	// Annotations of the layer have the signature, and who made it when.
	Annotations map[string]string
}

// Annotations of a layer with a signature.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLogEntry    = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// VerifySignature checks that somebody who counts signed the manifest with the
// digest. A signature that doesn't is [failure.SignatureInvalid].
//
// Which repository the payload names doesn't matter, as for cosign itself: copies
// in other registries keep their signatures.
func (c *Cosign) VerifySignature(digest string, s Signature) error {
	raw, err := base64.StdEncoding.DecodeString(s.Annotations[annotationSignature])
	if err != nil || len(raw) == 0 {
		return flaw("it has no signature in its annotations")
	}
	if err := c.signer(s, raw); err != nil {
		return err
	}
	var signed payload.SimpleContainerImage
	switch err := json.Unmarshal(s.Payload, &signed); {
	case err != nil:
		return flaw("it signs a text that isn't cosign's")
	case signed.Critical.Type != payload.CosignSignatureType:
		return flaw("it signs a text of type %+.256q", signed.Critical.Type)
	case signed.Critical.Image.DockerManifestDigest != digest:
		return flaw("it is of another artifact, %+.256q", signed.Critical.Image.DockerManifestDigest)
	}
	return nil
}

// signer checks that somebody who counts signed the payload.
func (c *Cosign) signer(s Signature, raw []byte) error {
	for _, key := range c.Keys {
		if key.signed(s.Payload, raw) {
			return nil
		}
	}
	switch {
	case s.Annotations[annotationCertificate] == "" && c.Keyless != nil && len(c.Keys) == 0:
		return flaw("it isn't made with a certificate")
	case s.Annotations[annotationCertificate] == "":
		return flaw("it is made with another key, or damaged")
	case c.Keyless == nil:
		return flaw("it is made with a certificate, not with one of the keys")
	}
	return c.Keyless.signature(s, raw)
}

// flaw returns the error of a signature that doesn't count, as in "it is made with another key".
// Its quotes of the signature are shortened and in ASCII.
func flaw(format string, args ...any) error {
	return failure.New(failure.SignatureInvalid, format, args...)
}

// BundleType is the media type of a Sigstore bundle.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// SignaturePredicate is the type of the statement that cosign signs. The same
// signer makes statements of other types of an artifact, too: a list of its parts,
// or that it failed a test. Such statements approve of nothing.
const SignaturePredicate = "https://sigstore.dev/cosign/sign/v1"

// VerifyBundle checks that somebody who counts signed the manifest. A bundle that
// doesn't say so is [failure.SignatureInvalid].
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
		return flaw("it is no signature but a statement of type %+.256q", statement.GetPredicateType())
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
