// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// versionCache is how much of lists of versions is kept in memory.
	versionCache = 8 << 20 // bytes
	// maxVersions is how many versions of one chart are taken into account.
	maxVersions = 100_000
)

// lists are the versions that charts were published in. What was read for one
// stack serves all that follow the same chart, with the same credentials.
type lists struct {
	clock   clock.PassiveClock
	known   *cache[string, list] // by chart and credentials
	flights singleflight.Group
}

// list of versions, as they were when it was asked for.
type list struct {
	asked    time.Time
	versions []string
}

// catalogue is a place that tells which versions of a chart there are.
type catalogue interface {
	// versions asks for all versions; an answer that is no older than that will do.
	versions(ctx context.Context, as *guest, notBefore time.Time) ([]string, error)
	// pin asks for the digest by which the object names this version from now on.
	pin(ctx context.Context, as *guest) (digest string, err error)
}

func newLists(clock clock.PassiveClock) *lists {
	return &lists{clock: clock, known: newCache[string](versionCache, list.bytes)}
}

func (l list) bytes() int64 {
	const overhead = 64
	size := int64(overhead)
	for _, version := range l.versions {
		size += int64(len(version)) + 16
	}
	return size
}

// Newest returns the newest published version that chart.version, a range, allows.
// What was found before is used, if that is no older than notBefore. Errors are of
// type [*Error], but for that of ctx: then the request goes on, and the next call
// finds its answer.
func (s *Sources) Newest(ctx context.Context, ref Reference, notBefore time.Time) (version string, err error) {
	allowed, err := versions.ParseRange(ref.Chart.Version)
	if err != nil {
		return "", ref.locate(failure(ReasonArtifactInvalid, "version can't be used: %w", err))
	}
	if _, err := s.origin(ref); err != nil {
		return "", ref.locate(err)
	}
	published, err := s.remote.list(ctx, ref, notBefore)
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	newest, found := allowed.Newest(published)
	if !found {
		return "", ref.locate(noneAllowed(ref.Chart.Version, published))
	}
	return newest, nil
}

// noneAllowed names the newest of those that there are.
func noneAllowed(wanted string, published []string) *Error {
	all, err := versions.ParseRange(">=0.0.0-0")
	if err == nil {
		if newest, found := all.Newest(published); found {
			return notPublished("it has no version that %s allows, the newest is %s; publish one, or correct version", quote(wanted), quote(newest))
		}
	}
	return notPublished("it has no version at all that is a semantic one; publish one, or correct url")
}

// Pin returns the digest by which the reference, with this exact version, is to be
// named in a revision. The content behind it was fetched then, verified and unpacked:
// a version that can't be used is an error, as of Newest.
func (s *Sources) Pin(ctx context.Context, ref Reference, version string) (digest string, err error) {
	ref.Chart = *ref.Chart.DeepCopy()
	ref.Chart.Version = version
	if _, err := s.origin(ref); err != nil {
		return "", ref.locate(err)
	}
	if digest, err = s.remote.pin(ctx, ref); err != nil {
		return "", conclude(ctx, ref, err)
	}
	switch {
	case ref.Chart.OCI != nil:
		ref.Chart.OCI.Digest = digest
	case ref.Chart.Helm != nil:
		ref.Chart.Helm.Digest = digest
	}
	content, err := s.Resolve(ctx, ref)
	if err == nil {
		_, err = s.Fetch(ctx, ref, content)
	}
	return digest, err
}

// list returns the versions of the reference's chart.
func (r *remote) list(ctx context.Context, ref Reference, notBefore time.Time) ([]string, error) {
	name := ref.chart()
	question := "versions of " + name
	for {
		if known, found := r.lists.known.get(name); found && !known.asked.Before(notBefore) {
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
		failed := r.ask(ctx, question, ref, func(place place, as *guest) (err error) {
			from, ok := place.(catalogue)
			if !ok {
				return failure(ReasonArtifactInvalid, "version is a range, but this kind of source has no list of versions; name one")
			}
			got.versions, err = from.versions(ctx, as, notBefore)
			return err
		})
		if failed.err == nil {
			r.answers.remove(question) // a failure before
			r.lists.known.put(name, got)
		}
		return landing{got, failed.error()}, nil
	})
	select {
	case <-ctx.Done():
		return list{}, ctx.Err()
	case <-r.clock.After(patience):
		return list{}, pending()
	case result := <-results:
		landed := result.Val.(landing)
		return landed.list, landed.failed
	}
}

// pin asks for the digest that names the version of the reference, once.
func (r *remote) pin(ctx context.Context, ref Reference) (string, error) {
	return r.digest(ctx, "pin of "+ref.String(), ref, func(ctx context.Context, place place, as *guest) (string, error) {
		from, ok := place.(catalogue)
		if !ok {
			return "", failure(ReasonArtifactInvalid, "this kind of source has no versions")
		}
		return from.pin(ctx, as)
	})
}

// chart identifies what has versions, and how it is asked.
func (r Reference) chart() string {
	r.Chart.Version = ""
	return r.visit()
}
