// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/lists"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Newest returns the newest published version of the line that the reference follows;
// what version the reference itself has doesn't matter. What was found before is used,
// if that is no older than notBefore. Errors are of type [*failure.Error], but for that of
// ctx: then the request goes on, and the next call finds its answer.
func (s *Sources) Newest(ctx context.Context, ref reference.Reference, line versions.Line, notBefore time.Time) (version string, err error) {
	if _, err := s.origin(ref); err != nil {
		return "", ref.Locate(err)
	}
	told, err := s.remote.inquire(ctx, ref, lists.Inquiry{Line: line}, notBefore)
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	if told.None != nil {
		return "", ref.Locate(failure.NotPublished("%w", told.None))
	}
	return told.Newest, nil
}

// Withdrawn says whether a version of the line isn't published any more. What was found
// before is used as by Newest, and errors are as there.
func (s *Sources) Withdrawn(ctx context.Context, ref reference.Reference, line versions.Line, version string, notBefore time.Time) (bool, error) {
	told, err := s.remote.inquire(ctx, ref, lists.Inquiry{Line: line, Version: version}, notBefore)
	if err != nil {
		return false, conclude(ctx, ref, err)
	}
	return told.Missing, nil
}

// Pin returns the digest by which the reference, with this exact version, is to be
// named in a revision. The content behind it was fetched then, verified and unpacked:
// a version that can't be used is an error, as of Newest.
// What was found before is used, if that is no older than notBefore.
func (s *Sources) Pin(ctx context.Context, ref reference.Reference, version string, notBefore time.Time) (digest string, err error) {
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	if _, err := s.origin(ref); err != nil {
		return "", ref.Locate(err)
	}
	published := ref
	published.Chart = *ref.Chart.DeepCopy() // without the digest
	if digest, err = s.remote.pin(ctx, ref, notBefore); err != nil {
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
	found, known := s.recall(ctx, ref, content)
	if !known || found.artifact == nil || ref.Kind.Verbatim() {
		return err
	}
	_, is := dependency.ChartOf(found.artifact.Files)
	version := ref.Chart.Version
	if strings.TrimPrefix(is, "v") == strings.TrimPrefix(version, "v") {
		return err
	}
	what := "what is published as version " + version
	if ref.Chart.OCI != nil {
		what = "tag " + reference.TagOf(version)
	}
	return published.Locate(failure.New(failure.DigestMismatch, "%s holds version %s of the chart; publish %s anew, or leave it out of the range", what, failure.Quote(is), version))
}

// pin asks for the digest that names the version of the reference, once for all who
// look at about the same time. A version that couldn't be used may be published anew,
// with another digest: so an older answer doesn't do.
func (r *remote) pin(ctx context.Context, ref reference.Reference, notBefore time.Time) (string, error) {
	question := "pin of " + ref.String()
	if known, found := r.answers.Get(question); found && known.err == nil && known.asked.Before(notBefore) {
		r.answers.Remove(question)
	}
	return r.digest(ctx, question, ref, func(ctx context.Context, at place.Place, as *guest.Guest) (string, error) {
		from, ok := at.(place.Catalogue)
		if !ok {
			return "", failure.New(failure.ArtifactInvalid, "this kind of source has no versions; name an exact one")
		}
		return from.Pin(ctx, as)
	})
}
