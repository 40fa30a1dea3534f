// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// versionCache is how much of lists of versions is kept in memory.
	versionCache = 8 << 20 // bytes
	// maxVersions is how many versions of one artifact are taken into account.
	maxVersions = 100_000
)

// lists are the versions that artifacts were published in. What was read for one
// stack serves all that follow the same artifact, with the same credentials.
type lists struct {
	clock   clock.PassiveClock
	known   *lru.Cache[string, list] // by artifact and credentials
	flights singleflight.Group
}

// list of versions, as they were when it was asked for.
type list struct {
	asked    time.Time
	versions []string
}

// catalogue is a place that tells which versions of an artifact there are.
type catalogue interface {
	// versions asks for all versions; an answer that is no older than that will do. Of
	// charts they are semantic ones, of anything else whatever releases are called.
	versions(ctx context.Context, as *guest, notBefore time.Time) ([]string, error)
	// pin asks for the digest by which the object names this version from now on.
	pin(ctx context.Context, as *guest) (digest string, err error)
}

func newLists(clock clock.PassiveClock) *lists {
	return &lists{clock: clock, known: lru.New[string](versionCache, list.bytes)}
}

func (l list) bytes() int64 {
	const overhead = 64
	size := int64(overhead)
	for _, version := range l.versions {
		size += int64(len(version)) + 16
	}
	return size
}

// Newest returns the newest published version of the line that the reference follows;
// what version the reference itself has doesn't matter. What was found before is used,
// if that is no older than notBefore. Errors are of type [*failure.Error], but for that of
// ctx: then the request goes on, and the next call finds its answer.
func (s *Sources) Newest(ctx context.Context, ref Reference, line versions.Line, notBefore time.Time) (version string, err error) {
	if _, err := s.origin(ref); err != nil {
		return "", ref.locate(err)
	}
	published, err := s.remote.list(ctx, ref, notBefore)
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	newest, found := line.Newest(published)
	if !found {
		return "", ref.locate(notPublished("%w", line.None(published)))
	}
	return newest, nil
}

// Withdrawn says whether a version of the line isn't published any more. What was found
// before is used as by Newest, and errors are as there.
func (s *Sources) Withdrawn(ctx context.Context, ref Reference, line versions.Line, version string, notBefore time.Time) (bool, error) {
	published, err := s.remote.list(ctx, ref, notBefore)
	if err != nil {
		return false, conclude(ctx, ref, err)
	}
	return !slices.ContainsFunc(published, func(is string) bool {
		return is == version || line.Allows(is) && !line.Newer(is, version) && !line.Newer(version, is) // "v1.0.0" will do for "1.0.0"
	}), nil
}

// Pin returns the digest by which the reference, with this exact version, is to be
// named in a revision. The content behind it was fetched then, verified and unpacked:
// a version that can't be used is an error, as of Newest.
// What was found before is used, if that is no older than notBefore.
func (s *Sources) Pin(ctx context.Context, ref Reference, version string, notBefore time.Time) (digest string, err error) {
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	if _, err := s.origin(ref); err != nil {
		return "", ref.locate(err)
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
	ref.found = true
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
func (s *Sources) misnamed(ctx context.Context, ref, published Reference, content string, err error) error {
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
		what = "tag " + tagOf(version)
	}
	return published.locate(failure.New(failure.DigestMismatch, "%s holds version %s of the chart; publish %s anew, or leave it out of the range", what, failure.Quote(is), version))
}

// list returns the versions of the reference's artifact.
func (r *remote) list(ctx context.Context, ref Reference, notBefore time.Time) ([]string, error) {
	name := ref.chart()
	question := "versions of " + name
	for {
		if known, found := r.lists.known.Get(name); found && !known.asked.Before(notBefore) {
			return known.versions, nil
		}
		if known, found := r.recall(ctx, question, ref); found {
			return nil, known.error()
		}
		got, err := r.askForList(ctx, name, question, ref, notBefore)
		if err != nil {
			return nil, err
		}
		if !got.asked.Before(notBefore) {
			return got.versions, nil
		}
		// Others began that request, too early.
	}
}

// askForList lets one of the concurrent callers ask for all.
func (r *remote) askForList(ctx context.Context, name, question string, ref Reference, notBefore time.Time) (list, error) {
	type landing struct {
		list   list
		failed error
	}
	results := r.lists.flights.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timeout)
		defer cancel()
		got := list{asked: r.clock.Now()}
		failed := r.ask(ctx, question, ref, func(ctx context.Context, place place, as *guest) (err error) {
			from, ok := place.(catalogue)
			if !ok {
				return failure.New(failure.ArtifactInvalid, "newer versions are to be looked for, but this kind of source has no list of them; name an exact version")
			}
			got.versions, err = from.versions(ctx, as, notBefore)
			return err
		})
		if failed.err == nil {
			r.answers.Remove(question) // a failure before
			r.lists.known.Put(name, got)
		}
		return landing{got, failed.error()}, nil
	})
	result, err := landed(ctx, r.clock, results)
	if err != nil {
		return list{}, err
	}
	got := result.Val.(landing)
	return got.list, got.failed
}

// pin asks for the digest that names the version of the reference, once for all who
// look at about the same time. A version that couldn't be used may be published anew,
// with another digest: so an older answer doesn't do.
func (r *remote) pin(ctx context.Context, ref Reference, notBefore time.Time) (string, error) {
	question := "pin of " + ref.String()
	if known, found := r.answers.Get(question); found && known.err == nil && known.asked.Before(notBefore) {
		r.answers.Remove(question)
	}
	return r.digest(ctx, question, ref, func(ctx context.Context, place place, as *guest) (string, error) {
		from, ok := place.(catalogue)
		if !ok {
			return "", failure.New(failure.ArtifactInvalid, "this kind of source has no versions")
		}
		return from.pin(ctx, as)
	})
}

// chart identifies what has versions, and how it is asked.
func (r Reference) chart() string {
	r.Chart.Version = ""
	if at := r.Chart.GitHub; at != nil {
		return r.visit() + " with tags " + at.TagPrefix
	}
	return r.visit()
}
