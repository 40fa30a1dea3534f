// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// list of the versions that an artifact was published in.
type list struct {
	asked    time.Time
	versions []string
}

// newest is what a list has for a line of versions. It is kept when the list, which may be
// long, has to go for others.
type newest struct {
	asked   time.Time
	version string
	none    error // why there is none
}

func (l *list) bytes() int64 {
	size := int64(64)
	if l != nil {
		for _, version := range l.versions {
			size += int64(len(version)) + 16
		}
	}
	return size
}

// Newest returns the newest published version of the line that the reference follows;
// what version the reference itself has doesn't matter. What was found before is used,
// if that is no older than notBefore. Errors are of type [*failure.Error], but for that of
// ctx: then the request goes on, and the next call finds its answer.
func (s *Sources) Newest(ctx context.Context, ref reference.Reference, line versions.Line, notBefore time.Time) (version string, err error) {
	key := s.question(ctx, line.String()+" in "+ref.Unversioned(), ref).Key
	known, found := s.newest.Get(key)
	if !found || known.asked.Before(notBefore) {
		published, err := s.published(ctx, ref, notBefore)
		if err != nil {
			return "", conclude(ctx, ref, err)
		}
		known = newest{asked: published.asked}
		if known.version, found = line.Newest(published.versions); !found {
			known.none = line.None(published.versions)
		}
		s.newest.Put(key, known)
	}
	if known.none != nil {
		return "", ref.Locate(failure.NotPublished("%w", known.none))
	}
	return known.version, nil
}

// Withdrawn says whether a version of the line isn't published any more. What was found
// before is used as by Newest, and errors are as there.
func (s *Sources) Withdrawn(ctx context.Context, ref reference.Reference, line versions.Line, version string, notBefore time.Time) (bool, error) {
	published, err := s.published(ctx, ref, notBefore)
	if err != nil {
		return false, conclude(ctx, ref, err)
	}
	return !slices.ContainsFunc(published.versions, func(is string) bool {
		return is == version || line.Allows(is) && !line.Newer(is, version) && !line.Newer(version, is) // "v1.0.0" will do for "1.0.0"
	}), nil
}

// published returns all versions of the reference's artifact.
func (s *Sources) published(ctx context.Context, ref reference.Reference, notBefore time.Time) (*list, error) {
	if err := s.check(ref); err != nil {
		return nil, err
	}
	from, ok := s.backendOf(ref).(catalogue)
	if !ok {
		return nil, failure.New(failure.ArtifactInvalid, "newer versions are to be looked for, but this kind of source has no list of them; name an exact version")
	}
	q := s.question(ctx, "versions of "+ref.Unversioned(), ref)
	q.NotBefore = notBefore
	return s.lists.Ask(ctx, q, func(ctx context.Context) (*list, error) {
		got := &list{asked: s.Clock.Now()}
		return got, s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, _ backend) (err error) {
			c.NotBefore = notBefore
			got.versions, err = from.Versions(ctx, c)
			return err
		})
	})
}

// Pin returns the digest by which the reference, with this exact version, is to be
// named in a revision. The content behind it was fetched then, verified and unpacked:
// a version that can't be used is an error, as of Newest.
// What was found before is used, if that is no older than notBefore.
func (s *Sources) Pin(ctx context.Context, ref reference.Reference, version string, notBefore time.Time) (digest string, err error) {
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	if err := s.check(ref); err != nil {
		return "", ref.Locate(err)
	}
	published := ref
	published.Chart = *ref.Chart.DeepCopy() // without the digest
	if digest, err = s.pin(ctx, ref, notBefore); err != nil {
		return "", conclude(ctx, ref, err)
	}
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.Digest = digest
	case ref.Chart.Helm != nil:
		ref.Chart.Helm.Digest = digest
	case ref.Chart.GitHub != nil:
		ref.Chart.GitHub.Digest = digest
	}
	ref.Found = true
	content, err := s.Resolve(ctx, ref)
	if err == nil {
		if _, err = s.Fetch(ctx, ref, content); err != nil {
			err = s.misnamed(ctx, ref, published, content, err)
		}
	}
	return digest, err
}

// misnamed is the error of content that was found by its version, and pinned then: if it
// holds another version, that isn't about the digest, which nobody wrote.
func (s *Sources) misnamed(ctx context.Context, ref, published reference.Reference, content string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Reason != failure.DigestMismatch {
		return err
	}
	found, known := s.contents.Peek(s.contentQuestion(ctx, ref, content).Key)
	if !known || ref.Kind.Verbatim() {
		return err
	}
	version := ref.Chart.Version
	if strings.TrimPrefix(found.version, "v") == strings.TrimPrefix(version, "v") {
		return err
	}
	what := "what is published as version " + version
	if ref.Chart.OCI != nil {
		what = "tag " + reference.TagOf(version)
	}
	return published.Locate(failure.New(failure.DigestMismatch, "%s holds version %s of the chart; publish %s anew, or leave it out of the range", what, failure.Quote(found.version), version))
}

// pin asks for the digest that names the version of the reference, once for all who
// look at about the same time. A version that couldn't be used may be published anew,
// with another digest: so an older answer doesn't do.
func (s *Sources) pin(ctx context.Context, ref reference.Reference, notBefore time.Time) (digest string, err error) {
	from, ok := s.backendOf(ref).(catalogue)
	if !ok {
		return "", failure.New(failure.ArtifactInvalid, "this kind of source has no versions; name an exact one")
	}
	q := s.question(ctx, "pin of "+ref.String(), ref)
	q.NotBefore = notBefore
	return s.digests.Ask(ctx, q, func(ctx context.Context) (digest string, err error) {
		err = s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, _ backend) error {
			c.NotBefore = notBefore
			digest, err = from.Pin(ctx, c)
			return err
		})
		return digest, err
	})
}
