// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// signed is a backend that has signatures of its content.
type signed interface {
	// Verify checks that the content with the digest is signed as the policy wants. It returns
	// the version that the signed text says, "" if that says none.
	Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) (version string, err error)
}

// verification checks signatures and provenance of contents.
type verification struct {
	required policy.Required
	trust    *policy.Reader
	from     backend
	// meets passes what meets the policy. It returns the version that the signed text says.
	meets func(ctx context.Context, ref reference.Reference, digest string, want policy.Policy) (string, error)
}

// verify makes sure that content is signed by whom the reference trusts, and the instance,
// before any of it is read. It evaluates a digest: whatever is taken after that, from wherever,
// has to have it. It returns the version that the signed text says.
func (v verification) verify(ctx context.Context, ref reference.Reference, digest string) (says string, err error) {
	if v.required.For(ref) {
		if says, err = v.verifyRequired(ctx, ref, digest); err != nil {
			return "", err
		}
	}
	if ref.Chart.Verify == nil {
		return says, nil
	}
	if _, can := v.from.(signed); !can {
		return "", policy.Fault(ref, "", "", errors.New("this kind of source has no signatures; use oci, helm, github or git, or take verify away"))
	}
	if ref.Chart.Verify.Cosign != nil && !ref.Traits().Registry {
		return "", policy.Fault(ref, ".cosign", "", errors.New("cosign is for oci; use provenance"))
	}
	want, err := v.trust.Of(ctx, ref)
	if err != nil {
		return "", err
	}
	return v.meets(ctx, ref, digest, want)
}

// verifyRequired passes what one of the instance's own keys signed.
func (v verification) verifyRequired(ctx context.Context, ref reference.Reference, digest string) (string, error) {
	policies, err := v.required.Of(ref)
	if err != nil {
		return "", err
	}
	if len(policies) == 0 {
		return "", failure.New(failure.SignatureMissing, "the provider instance wants all to be signed by its own keys, and has none for this kind of source: charts of oci, helm and github can be signed, and all else of oci and git")
	}
	var first error
	for _, want := range policies {
		says, err := v.meets(ctx, ref, digest, want)
		if failed, ok := errors.AsType[*failure.Error](err); err == nil || !ok || failed.Reason != failure.SignatureMissing && failed.Reason != failure.SignatureInvalid {
			return says, err
		}
		first = cmp.Or(first, err)
	}
	return "", first
}

// meets passes what meets the policy. However many clusters want it, it is verified once, and
// again when a key changes.
func (s *Sources) meets(ctx context.Context, ref reference.Reference, digest string, want policy.Policy) (string, error) {
	want.Now = s.Clock.Now()
	q := s.question(ctx, "signature of "+digest+" for "+want.Digest+" from "+ref.String(), ref)
	from := s.backendOf(ref).(signed)
	return ask(ctx, s, s.verified, q, ref, func(ctx context.Context, c *auth.Client) (string, error) {
		return from.Verify(ctx, c, digest, want)
	})
}
