// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
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

// accepts checks that the content is what the reference calls it, as far as the content or
// its signed text says that. The keys that signed it signed other things, and older ones. An
// attacker who may move a tag can show one of these.
func accepts(r reference.Reference, got *Artifact, says string, required bool) error {
	byCosign := r.Traits().Registry && (required || r.Chart.Verify != nil && r.Chart.Verify.Cosign != nil)
	switch {
	case r.Kind.Verbatim():
		return acceptsFiles(r, got, says, byCosign)
	case byCosign && got.name != r.ChartName(): // a provenance file says the name, too
		return failure.New(failure.SignatureInvalid, "what is signed is chart %s, not %s, as the last part of oci.url says; publish the signed chart in a repository of its own name, or correct oci.url",
			failure.Quote(got.name), failure.Quote(r.ChartName()))
	}
	return acceptsVersion(r, got, required || r.Chart.Verify != nil)
}

// acceptsVersion checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func acceptsVersion(r reference.Reference, got *Artifact, verified bool) error {
	digest, field := r.DigestField()
	wanted, is := failure.Quote(r.Chart.Version), failure.Quote(got.version)
	switch {
	case digest == "" && !verified, r.Chart.Version == "", reference.SameVersion(got.version, r.Chart.Version):
		return nil
	case r.Traits().Releases && !verified:
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	case r.Found:
		return failure.New(failure.DigestMismatch, "what is published as version %s holds version %s of the chart; publish it again, or leave it out of the range", wanted, is)
	case digest == "":
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not %s; publish the signed chart under its own version, or correct version", is, wanted)
	}
	return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not %s; correct one of both", field, is, wanted)
}

// acceptsFiles checks that the release of a Cluster Stack is the one that its tag names, and
// that all else says its version in its manifest, if that is signed. None of both is needed if
// the object names the manifest's own digest.
func acceptsFiles(r reference.Reference, got *Artifact, says string, signed bool) error {
	published := r.Tag()
	_, notATag := clusterstack.ParseTag(published)
	if got.metadata != nil && (signed || notATag == nil) {
		names := artifact.Names(got.Files)
		root := artifact.OnlyDirectory(names)
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], root)
		}
		reason := failure.ArtifactInvalid
		if signed {
			reason = failure.SignatureInvalid
		}
		if known, err := layout.IsRelease(published, got.metadata, names); err != nil {
			return failure.New(reason, "%w", err)
		} else if known {
			return nil
		}
	}
	switch {
	case !signed, r.Chart.Version == "", reference.SameVersion(says, r.Chart.Version), says == "" && r.NamesDigest():
		return nil
	case says == "":
		return failure.New(failure.SignatureInvalid, "its manifest is signed, but doesn't say of which version it is; push and sign one with the annotation org.opencontainers.image.version=%s, or name this one in oci.digest", r.Chart.Version)
	}
	return failure.New(failure.SignatureInvalid, "what is signed is version %s (annotation org.opencontainers.image.version of the manifest), not %s; publish it under its own version, or correct version",
		failure.Quote(says), failure.Quote(r.Chart.Version))
}
