// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
)

// OpenBundle reads a bundle. Its files, and those of the archives in it, count until the context's holder releases them; see
// [budget.Holding].
func (s *Sources) OpenBundle(ctx context.Context, namespace string, from *addonsv1.BundleSource) (*unpack.Bundle, error) {
	ref := reference.BundleOf(namespace, from)
	digest, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	fetched, err := s.Fetch(ctx, ref, digest)
	if err != nil {
		return nil, err
	}
	most := fetched.Bytes() + s.Limits.TotalBytes
	claim := s.Memory.Claim(budget.Tenant{Namespace: namespace}, most)
	if !claim.Try(most) {
		busy := failure.New(failure.ArtifactPending, "other bundles of namespace %s are open, and take all memory that it may have", namespace)
		busy.Wait, busy.RetryAfter = true, retry.Room
		return nil, ref.Locate(busy)
	}
	claim.Release(ctx)
	scope, _ := s.scope(ctx, ref)
	return s.bundleOf(ctx, scope, digest, fetched.Files), nil
}

// bundleOf returns files as a bundle. The scope says who may have the same.
func (s *Sources) bundleOf(ctx context.Context, scope, digest string, files []artifact.File) *unpack.Bundle {
	return s.unpacker().Bundle(ctx, digest, files, func(ctx context.Context, archive string, open func(context.Context) (*unpack.Artifact, error)) (*unpack.Artifact, error) {
		return s.contents.Ask(ctx, answers.Question{Key: "archive " + archive + " from " + scope}, open)
	})
}

func (s *Sources) unpacker() unpack.Unpacker {
	return unpack.Unpacker{Opener: s.Opener, Limits: s.Limits}
}

// resolveInBundle returns the digest of an artifact with a path in a bundle.
func (s *Sources) resolveInBundle(ctx context.Context, ref reference.Reference) (string, error) {
	bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return "", err
	}
	scope, _ := s.scope(ctx, reference.BundleOf(ref.Namespace, ref.Bundle))
	q := answers.Question{Key: bundle.Digest + " " + ref.Chart.Path + ref.Kind.Suffix() + " from " + scope}
	return s.digests.Ask(ctx, q, func(ctx context.Context) (string, error) {
		got, err := fetching{s}.readInBundle(ctx, ref)
		return got.Digest(), err
	})
}

// fetching gets contents that are nowhere in memory.
type fetching struct{ *Sources }

// readInBundle returns what is at a path in a bundle.
func (s fetching) readInBundle(ctx context.Context, ref reference.Reference) (artifact.Content, error) {
	bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return artifact.Content{}, err
	}
	return bundle.Content(ref.Chart.Path, ref.Kind)
}
