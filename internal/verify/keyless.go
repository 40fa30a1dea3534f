// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// Identity is who may have asked for the certificate that a signature is made with.
type Identity struct {
	Issuer string
	// Subject is an exact one; or else SubjectRegExp matches all of it.
	Subject       string
	SubjectRegExp string
}

// String says whom it stands for.
func (i Identity) String() string {
	if i.Subject != "" {
		return fmt.Sprintf("%s of issuer %s", i.Subject, i.Issuer)
	}
	return fmt.Sprintf("subjects that match %s of issuer %s", i.SubjectRegExp, i.Issuer)
}

// Keyless is whose certificates count, and who may have issued them.
type Keyless struct {
	identities []Identity
	policies   []verify.PolicyOption
	verifier   *verify.Verifier
}

// NewKeyless checks the identities; see [ParseTrustRoot] for the root.
func NewKeyless(identities []Identity, trusted *root.TrustedRoot) (*Keyless, error) {
	k := &Keyless{identities: identities}
	for n, identity := range identities {
		matcher := ""
		if identity.Subject == "" {
			matcher = `\A(?:` + identity.SubjectRegExp + `)\z`
		}
		certificate, err := verify.NewShortCertificateIdentity(identity.Issuer, "", identity.Subject, matcher)
		if err != nil || identity == (Identity{Issuer: identity.Issuer}) {
			return nil, fmt.Errorf("identities[%d] needs an issuer, and subject, or a regular expression as subjectRegExp", n)
		}
		k.policies = append(k.policies, verify.WithCertificateIdentity(certificate))
	}
	if len(k.policies) == 0 {
		return nil, errors.New("it names no identities; add one")
	}
	verifier, err := verify.NewVerifier(trusted, demands(trusted)...)
	if err != nil {
		return nil, fmt.Errorf("the trust root can't be used, correct trustRoot: %w", err)
	}
	k.verifier = verifier
	return k, nil
}

// demands returns what the root can vouch for. Somebody has to say when a signature
// was made: certificates are good for minutes, and are evaluated as of then.
func demands(trusted root.TrustedMaterial) []verify.VerifierOption {
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	return options
}

// ParseTrustRoot reads a Sigstore trusted root in JSON.
func ParseTrustRoot(data []byte) (*root.TrustedRoot, error) {
	trusted, err := root.NewTrustedRootFromJSON(data)
	switch {
	case err != nil:
		return nil, errors.New("it is no Sigstore trusted root (application/vnd.dev.sigstore.trustedroot+json;version=0.1); make one with `cosign trusted-root create`")
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return nil, errors.New("the trust root has no certificate authority; add one")
	case len(trusted.RekorLogs()) == 0 && len(trusted.TimestampingAuthorities()) == 0:
		return nil, errors.New("the trust root has neither a transparency log nor a timestamp authority: nobody could say when a signature was made; add one of both")
	}
	return trusted, nil
}

// check verifies a signature that was made with a certificate.
func (k *Keyless) check(entity verify.SignedEntity, artifact verify.ArtifactPolicyOption) error {
	_, err := k.verifier.Verify(entity, verify.NewPolicy(artifact, k.policies...))
	if err == nil {
		return nil
	}
	material, unread := entity.VerificationContent()
	if unread != nil || material.Certificate() == nil {
		return flaw("it isn't made with a certificate")
	}
	who, unread := certificate.SummarizeCertificate(material.Certificate())
	if unread != nil {
		return flaw("its certificate doesn't say whose it is")
	}
	return flaw("it says that it is by %+.128q of issuer %+.128q, and doesn't count: %+.256q", who.SubjectAlternativeName, who.Issuer, err.Error())
}

// oldBundleType is that of bundles whose log entries are proven by a promise of the
// log, as annotations have it, instead of by the place in its tree.
const oldBundleType = "application/vnd.dev.sigstore.bundle+json;version=0.1"

// signature verifies that the payload is signed with a certificate. The values of the annotations
// are put together as a bundle, for the same checks.
func (k *Keyless) signature(s Signature, raw []byte) error {
	certificate, _ := pem.Decode([]byte(s.Annotations[annotationCertificate]))
	if certificate == nil {
		return flaw("its certificate can't be read")
	}
	material := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: certificate.Bytes}},
		}},
	}
	if text := s.Annotations[annotationLogEntry]; text != "" {
		entry, err := logEntry(text)
		if err != nil {
			return flaw("its entry of a transparency log can't be read")
		}
		material.TlogEntries = append(material.TlogEntries, entry)
	}
	if text := s.Annotations[annotationTimestamp]; text != "" {
		var timestamp struct{ SignedRFC3161Timestamp []byte }
		if err := json.Unmarshal([]byte(text), &timestamp); err != nil {
			return flaw("its timestamp can't be read")
		}
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamp.SignedRFC3161Timestamp}},
		}
	}
	sum := sha256.Sum256(s.Payload)
	signed, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType:            oldBundleType,
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     raw,
		}},
	})
	if err != nil {
		return flaw("its annotations make no signature")
	}
	return k.check(signed, verify.WithArtifact(bytes.NewReader(s.Payload)))
}

// logEntry reads the entry of a transparency log, with the log's promise.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	var entry struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return nil, err
	}
	log, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.Payload.Body, &kind); err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          entry.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: log},
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}, nil
}
