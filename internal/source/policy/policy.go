// SPDX-License-Identifier: Apache-2.0

// Package policy says whom a reference trusts to sign what it means.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/verify"
)

// Policy is whom a reference trusts: one of cosign and keyring is set.
type Policy struct {
	Cosign  *verify.Cosign
	Keyring *verify.Keyring
	// Digest of all that decides what the policy accepts: the keys themselves, not
	// where they are kept.
	Digest string
	// Now is when it is applied: the keys of a keyring may have expired.
	Now time.Time
	// ByInstance is set if it is the instance's own; else it is the reference's.
	ByInstance bool
}

// Refuse returns the error of content whose signature isn't the wanted one. The text found says so,
// and wayOut says how to fix it.
func (p Policy) Refuse(reason, found, wayOut string) *failure.Error {
	by, orCorrect, who := "verify wants", ", or correct verify", p.Keyring.String
	if p.ByInstance { // whoever wrote the object can't correct its policy
		by, orCorrect = "the provider instance wants", ""
	}
	if p.Cosign != nil {
		who = p.Cosign.String
	}
	return failure.New(reason, "%s; %s a signature by %s; %s%s", found, by, who(), wayOut, orCorrect)
}

// trustCache is how much of keys and trust roots is kept in memory.
const trustCache = 8 << 20 // bytes

// Reader reads policies from the ConfigMaps and Secrets of the object's own
// namespace. The content of a version of an object is kept, so that nobody is asked while the
// object is unchanged.
//
// Key: the object and its version.
// Bound: trustCache bytes.
// Lost with it: each object is read once more.
type Reader struct {
	objects *object.Reader
	reads   sync.Mutex // one at a time, for all who want the same
	known   *budget.Cache[reference.Object, object.Content]
}

// NewReader returns a reader that has read nothing yet.
func NewReader(objects *object.Reader, memory *budget.Budget) *Reader {
	return &Reader{objects: objects, known: budget.NewCache[reference.Object](memory, trustCache, func(k object.Content) int64 { return int64(len(k.Data)) + 256 })}
}

// data returns what the object holds at the key.
func (r *Reader) data(ctx context.Context, key reference.Object) ([]byte, error) {
	version := r.objects.Version(ctx, key)
	r.reads.Lock()
	defer r.reads.Unlock()
	if known, found := r.known.Get(key); found && version != "" && known.Version == version {
		return known.Data, nil
	}
	read, err := r.objects.Read(ctx, key)
	if err == nil {
		r.known.Put(budget.Tenant{Namespace: key.Namespace}, key, read)
	}
	return read.Data, err
}

// Of reads the policy of the reference. Its errors say where in the reference the policy is wrong.
func (r *Reader) Of(ctx context.Context, ref reference.Reference) (Policy, error) {
	want := ref.Chart.Verify
	var decides []string
	var read Policy
	switch {
	case (want.Cosign != nil) == (want.Provenance != nil):
		return Policy{}, Fault(ref, "", "", errors.New("set exactly one of cosign and provenance"))
	case want.Cosign != nil:
		read.Cosign = &verify.Cosign{}
		for i, reference := range want.Cosign.PublicKeys {
			key, _, err := trusted(ctx, r, ref, reference, addonsv1.DefaultPublicKeyKey, fmt.Sprintf(".cosign.publicKeys[%d]", i), verify.ParsePublicKey)
			if err != nil {
				return Policy{}, err
			}
			read.Cosign.Keys = append(read.Cosign.Keys, key)
			decides = append(decides, "key "+key.Fingerprint)
		}
		if keyless := want.Cosign.Keyless; keyless != nil {
			made, content, err := r.keyless(ctx, ref, keyless)
			if err != nil {
				return Policy{}, err
			}
			read.Cosign.Keyless = made
			decides = append(decides, "keyless "+content)
		}
		if len(decides) == 0 {
			return Policy{}, Fault(ref, ".cosign", "", errors.New("set publicKeys, keyless, or both"))
		}
	default:
		keyring, _, err := trusted(ctx, r, ref, want.Provenance.Keyring, addonsv1.DefaultKeyringKey, ".provenance.keyring", verify.ParseKeyring)
		if err != nil {
			return Policy{}, err
		}
		read.Keyring = keyring
		// A provenance file names the archive, so what it is called decides, too.
		decides = append(decides, "keyring "+keyring.Fingerprint, ref.ArchiveNames()[0])
	}
	return made(read, decides), nil
}

// made completes a policy with the digest of what decides.
func made(read Policy, decides []string) Policy {
	if read.ByInstance { // a failure is told in other words
		decides = append(decides, "the instance's own")
	}
	read.Digest = artifact.DigestOf([]byte(fmt.Sprintf("%q", decides)))
	return read
}

func (r *Reader) keyless(ctx context.Context, ref reference.Reference, want *addonsv1.KeylessVerification) (*verify.Keyless, string, error) {
	const field = ".cosign.keyless"
	root, content, err := trusted(ctx, r, ref, want.TrustRoot, addonsv1.DefaultTrustRootKey, field+".trustRoot", verify.ParseTrustRoot)
	if err != nil {
		return nil, "", err
	}
	identities := make([]verify.Identity, 0, len(want.Identities))
	for _, identity := range want.Identities {
		identities = append(identities, verify.Identity(identity))
	}
	made, err := verify.NewKeyless(identities, root)
	if err != nil {
		return nil, "", Fault(ref, field, "", err)
	}
	return made, fmt.Sprintf("%s %#v", content, identities), nil
}

// trusted reads and parses what a reference of the policy names, and returns the digest of that.
func trusted[T any](ctx context.Context, r *Reader, ref reference.Reference, at addonsv1.TrustReference, key, field string, parse func([]byte) (T, error)) (parsed T, digest string, err error) {
	object := reference.Object{Kind: at.Kind, Namespace: ref.Namespace, Name: at.Name, Key: cmp.Or(at.Key, key)}
	data, err := r.data(ctx, object)
	if err != nil {
		at, known := Fault(ref, field, object.String(), err), failure.Of(err)
		at.Err = known.Err
		if known.Reason == failure.ArtifactNotFound {
			at.Wait = true // it may come
		} else {
			at.Reason = known.Reason
		}
		return parsed, "", at
	}
	if parsed, err = parse(data); err != nil {
		return parsed, "", Fault(ref, field, object.String(), err)
	}
	return parsed, artifact.DigestOf(data), nil
}

// Fault returns an error about the reference's policy, not about the source.
func Fault(r reference.Reference, field, subject string, err error) *failure.Error {
	return &failure.Error{
		Reason: failure.VerificationPolicyInvalid, Field: r.Kind.Field() + ".verify" + field, Subject: subject, Err: err, RetryAfter: retry.Policy,
	}
}

const (
	// ProvenanceSuffix ends the names of files that are beside an archive, and are none.
	ProvenanceSuffix = ".prov"
	// MaxProvenance bounds a provenance file: a Chart.yaml and a signature.
	MaxProvenance = 256 << 10 // bytes
)

// CheckProvenance passes content with the digest if its provenance file says so, signed
// as the policy wants.
func (p Policy) CheckProvenance(file []byte, digest string, ref reference.Reference) error {
	names := ref.ArchiveNames()
	fits := func(name string) bool {
		return slices.ContainsFunc(names, func(pattern string) bool { return reference.FitsAsset(pattern, name) })
	}
	err := p.Keyring.Verify(file, digest, fits, p.Now)
	if flaw, ok := errors.AsType[*failure.Error](err); ok && flaw.Reason == failure.SignatureInvalid {
		return p.Refuse(failure.SignatureInvalid, "its provenance file doesn't count: "+flaw.Error(), "have "+names[0]+" signed by that")
	}
	return err
}

// CheckCommit passes a commit of Git if it is signed as the policy wants. A nil text is one that is too large to be looked at.
func (p Policy) CheckCommit(text []byte, commit string) error {
	const wayOut = "sign commits with `git commit -S`, and by OpenPGP"
	payload, signature := verify.Signed(text)
	if signature == nil {
		return p.Unsigned("commit "+commit+" has none that could be read", wayOut)
	}
	err := p.Keyring.Check(payload, signature, p.Now)
	if flaw, ok := errors.AsType[*failure.Error](err); ok {
		return p.Refuse(failure.SignatureInvalid, "the signature of commit "+commit+" doesn't count: "+flaw.Error(), wayOut)
	}
	return err
}

// Unsigned returns the error of content without any signature.
func (p Policy) Unsigned(where, wayOut string) *failure.Error {
	missing := p.Refuse(failure.SignatureMissing, "it has no signature ("+where+")", wayOut)
	missing.Wait = true
	return missing
}
