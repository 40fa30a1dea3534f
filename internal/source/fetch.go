// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"

	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
)

// Fetch returns the content with the digest, which has to be what Resolve said of the same
// reference. All who may have it share one download, and one unpacking. Errors are of type
// [*failure.Error], but for that of ctx.
//
// To know a digest gives no right to the content: it is shared by those alone who ask at the
// same address with the same credentials.
func (s *Sources) Fetch(ctx context.Context, ref reference.Reference, digest string) (*unpack.Artifact, error) {
	got, err := s.fetch(ctx, ref, digest)
	if err != nil {
		return nil, s.Refused(ctx, ref, digest, conclude(ctx, ref, err))
	}
	return got, nil
}

func (s *Sources) fetch(ctx context.Context, ref reference.Reference, digest string) (*unpack.Artifact, error) {
	var says string // of its version, by the signed text
	required := s.required.For(ref)
	if required || ref.Chart.Verify != nil {
		var err error
		if says, err = (verification{s.required, s.trust, s.backendOf(ref), s.meets}).verify(ctx, ref, digest); err != nil {
			return nil, err
		}
	}
	shared, kept := s.scope(ctx, ref)
	q := answers.Question{Key: digest + ref.Kind.Suffix() + " from " + shared}
	got, err := s.contents.Ask(ctx, q, func(ctx context.Context) (*unpack.Artifact, error) { return fetching{s}.load(ctx, ref, kept, digest) })
	if err != nil {
		return nil, err
	}
	return got, unpack.Accept(ref, got, says, required)
}

// scope names who may have the same content as the reference, in memory and on disk. The latter
// is "" of what isn't kept there.
func (s *Sources) scope(ctx context.Context, ref reference.Reference) (shared, kept string) {
	switch {
	case ref.Bundle != nil:
		bundle, _ := s.scope(ctx, reference.BundleOf(ref.Namespace, ref.Bundle))
		return ref.String() + ", " + bundle, ""
	case ref.Remote():
		identity, scope := s.access.Identity(ctx, ref)
		return cmp.Or(scope, ref.String()) + " as " + identity, scope // of a Secret that isn't known, those who name it
	case ref.Chart.Path != "":
		return ref.String(), ""
	}
	return ref.String() + " at " + s.objects.Version(ctx, ref.Object()), ""
}
