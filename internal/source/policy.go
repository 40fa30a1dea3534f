// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// policy is whom a reference trusts: one of cosign and keyring is set.
type policy struct {
	cosign  *verify.Cosign
	keyring *verify.Keyring
	// digest of all that decides what the policy accepts: the keys themselves, not
	// where they are kept.
	digest string
	// now is when it is applied: the keys of a keyring may have expired.
	now time.Time
}

// who is wanted.
func (p policy) who() string {
	if p.cosign != nil {
		return p.cosign.String()
	}
	return p.keyring.String()
}

// policy reads the one of the reference. What is wrong with it is located there.
func (t *trust) policy(ctx context.Context, ref reference.Reference) (policy, error) {
	want := ref.Chart.Verify
	var decides []string
	var read policy
	switch {
	case (want.Cosign != nil) == (want.Provenance != nil):
		return policy{}, atPolicy(ref, "", "", errors.New("set exactly one of cosign and provenance"))
	case want.Cosign != nil:
		read.cosign = &verify.Cosign{}
		for i, reference := range want.Cosign.PublicKeys {
			key, err := trusted(ctx, t, ref, reference, addonsv1.DefaultPublicKeyKey, fmt.Sprintf(".cosign.publicKeys[%d]", i), verify.ParsePublicKey)
			if err != nil {
				return policy{}, err
			}
			read.cosign.Keys = append(read.cosign.Keys, key)
			decides = append(decides, "key "+key.Fingerprint)
		}
		if keyless := want.Cosign.Keyless; keyless != nil {
			made, content, err := t.keyless(ctx, ref, keyless)
			if err != nil {
				return policy{}, err
			}
			read.cosign.Keyless = made
			decides = append(decides, "keyless "+content)
		}
		if len(decides) == 0 {
			return policy{}, atPolicy(ref, ".cosign", "", errors.New("set publicKeys, keyless, or both"))
		}
	default:
		keyring, err := trusted(ctx, t, ref, want.Provenance.Keyring, addonsv1.DefaultKeyringKey, ".provenance.keyring", verify.ParseKeyring)
		if err != nil {
			return policy{}, err
		}
		read.keyring = keyring
		// A provenance file names the archive, so what it is called decides, too.
		decides = append(decides, "keyring "+keyring.Fingerprint, archiveNames(ref).String())
	}
	if oci := ref.Chart.OCI; oci != nil && ref.Kind != artifact.KindChart { // see [ociChart.approved]
		decides = append(decides, fmt.Sprintf("%s as version %q of manifest %q, %t", ref.Kind, ref.Chart.Version, oci.Digest, ref.NamesDigest()))
	}
	read.digest = digestOf(decides)
	return read, nil
}

func (t *trust) keyless(ctx context.Context, ref reference.Reference, want *addonsv1.KeylessVerification) (*verify.Keyless, string, error) {
	const field = ".cosign.keyless"
	content := ""
	root, err := trusted(ctx, t, ref, want.TrustRoot, addonsv1.DefaultTrustRootKey, field+".trustRoot", parseAnd(&content, verify.ParseTrustRoot))
	if err != nil {
		return nil, "", err
	}
	identities := make([]verify.Identity, 0, len(want.Identities))
	for _, identity := range want.Identities {
		identities = append(identities, verify.Identity(identity))
	}
	made, err := verify.NewKeyless(identities, root)
	if err != nil {
		return nil, "", atPolicy(ref, field, "", err)
	}
	all, err := json.Marshal(identities)
	if err != nil {
		return nil, "", fmt.Errorf("computing a digest: %w", err)
	}
	return made, content + string(all), nil
}

// parseAnd notes the digest of what is parsed.
func parseAnd[T any](digest *string, parse func([]byte) (T, error)) func([]byte) (T, error) {
	return func(data []byte) (T, error) {
		*digest = digestOf([]string{string(data)})
		return parse(data)
	}
}

// trusted reads and parses what a reference of the policy names.
func trusted[T any](ctx context.Context, t *trust, ref reference.Reference, at addonsv1.TrustReference, key, field string, parse func([]byte) (T, error)) (parsed T, err error) {
	if at.Key != "" {
		key = at.Key
	}
	object := reference.Object{Kind: at.Kind, Namespace: ref.Namespace, Name: at.Name, Key: key}
	data, err := t.data(ctx, object)
	if err != nil {
		return parsed, policyUnread(ref, field, object, err)
	}
	if parsed, err = parse(data); err != nil {
		return parsed, atPolicy(ref, field, object.String(), err)
	}
	return parsed, nil
}

// policyRetry is when to look at a policy again that can't be used. A change of an
// object that it names comes as an event, and is acted on at once.
const policyRetry = 30 * time.Second

// atPolicy is an error about the reference's policy, not about the source.
func atPolicy(r reference.Reference, field, subject string, err error) *failure.Error {
	return &failure.Error{
		Reason: failure.VerificationPolicyInvalid, Field: r.Kind.Field() + ".verify" + field, Subject: subject, Err: err, RetryAfter: policyRetry,
	}
}

// policyUnread is the error of an object that can't be read. What is missing may come.
func policyUnread(r reference.Reference, field string, object reference.Object, err error) *failure.Error {
	at := atPolicy(r, field, object.String(), err)
	var known *failure.Error
	switch {
	case !errors.As(err, &known):
		at.Reason = failure.SourceUnavailable
	case known.Reason == failure.ArtifactNotFound:
		at.Err, at.Wait = known.Err, true
	default:
		at.Err, at.Reason = known.Err, known.Reason
	}
	return at
}

func digestOf(parts []string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d %s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
