// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// catalogue is a backend that tells which versions of an artifact there are.
type catalogue interface {
	// Versions asks for all versions. Charts have semantic versions. For anything else, the
	// versions are the names of releases. No version is longer than versions.MaxLength.
	Versions(ctx context.Context, c *auth.Client) ([]string, error)
}

// Newest returns the newest published version of the line that the reference follows. The version
// of the reference itself doesn't matter. An answer that was found before is used, if it is no
// older than notBefore. Errors are of type [*failure.Error], but for the error of ctx: then the
// request continues, and the next call finds its answer.
func (s *Sources) Newest(ctx context.Context, ref reference.Reference, line versions.Line, notBefore time.Time) (string, error) {
	found, err := s.find(ctx, ref, "newest of "+line.String(), line.Newest, notBefore)
	switch {
	case err != nil:
		return "", conclude(ctx, ref, err)
	case found.none != nil:
		return "", ref.Locate(failure.NotPublished("%w", found.none))
	}
	return found.version, nil
}

// Withdrawn reports whether a version of the line isn't published any more. An answer that was
// found before is used as by Newest, and errors are as there.
func (s *Sources) Withdrawn(ctx context.Context, ref reference.Reference, line versions.Line, version string, notBefore time.Time) (bool, error) {
	found, err := s.find(ctx, ref, version+" in "+line.String(), func(published []string) (string, error) {
		at := slices.IndexFunc(published, func(is string) bool {
			return is == version || line.Allows(is) && line.Newer(is, version) == line.Newer(version, is) // "v1.0.0" will do for "1.0.0", and any commit of a branch
		})
		if at < 0 {
			return "", errWithdrawn
		}
		return version, nil
	}, notBefore)
	if err != nil {
		return false, conclude(ctx, ref, err)
	}
	return found.none != nil, nil
}

var errWithdrawn = errors.New("the version isn't published")

// Pin returns the digest by which the reference, with this exact version, is to be
// named in a revision. The content behind it was fetched then, verified and unpacked:
// a version that can't be used is an error, as of Newest.
// An answer that was found before is used, if it is no older than notBefore.
func (s *Sources) Pin(ctx context.Context, ref reference.Reference, version string, notBefore time.Time) (digest string, err error) {
	ref = ref.WithVersion(version)
	// A version that couldn't be used may be published again, with another digest: so an older
	// answer doesn't do.
	q := s.question(ctx, "pin of "+ref.String(), ref)
	q.NotBefore = notBefore
	from := s.backendOf(ref)
	digest, err = ask(ctx, s, s.digests, q, ref, func(ctx context.Context, c *auth.Client) (string, error) {
		if registry, ok := from.(oci.Artifact); ok {
			return registry.Pin(ctx, c)
		}
		digest, _, err := from.Resolve(ctx, c)
		return digest, err
	})
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	ref = ref.WithDigest(digest)
	ref.Found = true
	content, err := s.Resolve(ctx, ref)
	if err == nil {
		_, err = s.Fetch(ctx, ref, content)
	}
	return digest, err
}
