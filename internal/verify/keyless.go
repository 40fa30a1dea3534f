// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// MaxTrustRoot is the size of a trust root. That of the public Sigstore has 7 KiB.
const MaxTrustRoot = 1 << 20 // bytes

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
	root       *root.TrustedRoot
	verifier   *verify.Verifier
}

// NewKeyless checks the identities; see [ParseTrustRoot] for the root.
func NewKeyless(identities []Identity, trusted *root.TrustedRoot) (*Keyless, error) {
	k := &Keyless{identities: identities, root: trusted}
	for n, identity := range identities {
		matcher := ""
		if identity.Subject == "" {
			if _, err := regexp.Compile(identity.SubjectRegExp); err != nil || identity.SubjectRegExp == "" {
				return nil, fmt.Errorf("identities[%d].subjectRegExp is no regular expression; correct it", n)
			}
			matcher = `\A(?:` + identity.SubjectRegExp + `)\z`
		}
		certificate, err := verify.NewShortCertificateIdentity(identity.Issuer, "", identity.Subject, matcher)
		if err != nil {
			return nil, fmt.Errorf("identities[%d] needs an issuer, and subject or subjectRegExp", n)
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

// demands are what the root can vouch for. Somebody has to say when a signature
// was made: certificates are good for minutes, and are judged as of then.
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
	if len(data) > MaxTrustRoot {
		return nil, errors.New("it is too large for a trust root; make one with `cosign trusted-root create`")
	}
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
	if _, err := k.verifier.Verify(entity, verify.NewPolicy(artifact, k.policies...)); err != nil {
		return k.explain(entity)
	}
	return nil
}

// explain says at which step a signature failed, in words that are always the same.
func (k *Keyless) explain(entity verify.SignedEntity) *Flaw {
	material, err := entity.VerificationContent()
	if err != nil || material.Certificate() == nil {
		return flaw("it isn't made with a certificate")
	}
	times, err := k.verifier.VerifyTransparencyLogInclusion(entity)
	if err != nil {
		return flaw("no transparency log of the trust root proves that it was made while its certificate was valid")
	}
	times, err = k.verifier.VerifyObserverTimestamps(entity, times)
	if err != nil {
		return flaw("nobody in the trust root says when it was made")
	}
	leaf := material.Certificate()
	who, err := certificate.SummarizeCertificate(leaf)
	if err != nil {
		return flaw("its certificate doesn't say whose it is")
	}
	subject := quote(who.SubjectAlternativeName)
	leaf.UnhandledCriticalExtensions = nil // as of a subject of a kind that Go doesn't know
	for _, at := range times {
		chains, err := verify.VerifyLeafCertificate(at.Timestamp, leaf, k.root)
		if err != nil {
			if at.Timestamp.Before(leaf.NotBefore) || at.Timestamp.After(leaf.NotAfter) {
				return flaw("its certificate, of %s, wasn't valid when it was made", subject)
			}
			return flaw("its certificate, of %s, isn't from a certificate authority of the trust root", subject)
		}
		if len(k.root.CTLogs()) > 0 && verify.VerifySignedCertificateTimestamp(chains, 1, k.root) != nil {
			return flaw("its certificate, of %s, isn't proven to be in a certificate transparency log of the trust root", subject)
		}
	}
	for _, identity := range k.identities {
		if identity.matches(who) {
			return flaw("it is of something else, or damaged; its certificate, of %s, is good", subject)
		}
	}
	return flaw("it is by %s of issuer %s", subject, quote(who.Issuer))
}

func (i Identity) matches(who certificate.Summary) bool {
	if i.Issuer != who.Issuer {
		return false
	}
	if i.Subject != "" {
		return i.Subject == who.SubjectAlternativeName
	}
	matched, err := regexp.MatchString(`\A(?:`+i.SubjectRegExp+`)\z`, who.SubjectAlternativeName)
	return err == nil && matched
}
