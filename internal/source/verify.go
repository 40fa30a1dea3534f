// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// verify makes sure that content is signed by whom the reference trusts, before any of it is
// read. It judges a digest: whatever is taken after that, from wherever, has to have it.
func (s *Sources) verify(ctx context.Context, ref reference.Reference, digest string) error {
	if err := s.verifyRequired(ctx, ref, digest); err != nil {
		return err
	}
	if ref.Chart.Verify == nil {
		return nil
	}
	if _, can := s.backendOf(ref).(signed); !can {
		return policy.Fault(ref, "", "", errors.New("this kind of source has no signatures; use oci, helm or github, or take verify away"))
	}
	if ref.Chart.Verify.Cosign != nil && ref.Chart.OCI == nil {
		return policy.Fault(ref, ".cosign", "", errors.New("cosign is for oci; use provenance"))
	}
	want, err := s.trust.Of(ctx, ref)
	if err != nil {
		return err
	}
	return s.meet(ctx, ref, digest, want)
}

// verifyRequired passes what one of the instance's own keys signed, if these are required.
func (s *Sources) verifyRequired(ctx context.Context, ref reference.Reference, digest string) error {
	if !s.required.For(ref) {
		return nil
	}
	policies, err := s.required.Of(ref)
	if err != nil {
		return err
	}
	if len(policies) == 0 {
		return failure.New(failure.SignatureMissing, "the provider instance wants all to be signed by its own keys, and has none for this kind of source: charts of oci, helm and github can be signed, and all else of oci")
	}
	var first error
	for _, want := range policies {
		err := s.meet(ctx, ref, digest, want)
		if failed, ok := errors.AsType[*failure.Error](err); err == nil || !ok || failed.Reason != failure.SignatureMissing && failed.Reason != failure.SignatureInvalid {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// meet passes what meets the policy. However many clusters want it, it is verified once, and
// again when a key changes.
func (s *Sources) meet(ctx context.Context, ref reference.Reference, digest string, want policy.Policy) error {
	want.Now = s.Clock.Now()
	q := s.question(ctx, "signature of "+digest+" for "+want.Digest+" from "+ref.String(), ref)
	_, err := s.verified.Ask(ctx, q, func(ctx context.Context) (bool, error) {
		err := s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, b backend) error {
			return b.(signed).Verify(ctx, c, digest, want)
		})
		return err == nil, err
	})
	return err
}

var (
	_ signed    = oci.Artifact{}
	_ signed    = helm.Chart{}
	_ signed    = github.Release{}
	_ catalogue = oci.Artifact{}
	_ catalogue = helm.Chart{}
	_ catalogue = github.Release{}
)
