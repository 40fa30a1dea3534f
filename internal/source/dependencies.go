// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// A chart that names dependencies in Chart.yaml and doesn't have them in charts/ gets
// them when it is fetched, in the versions of its Chart.lock:
//
//   - package dependency finds what is missing, and the version of each, and puts it all
//     together,
//   - package reference says where each is, and package guest with which credentials,
//   - dependencies_gather.go fetches them.
//
// Those beside the chart, in the same artifact, are part of what the chart's digest
// is taken of. What all others were is remembered by dependencies_pins.go.

// complete returns the chart with its dependencies.
func (s *Sources) complete(ctx context.Context, ref reference.Reference, found verdict) (*Artifact, error) {
	switch {
	case found.flaw != nil:
		return nil, ref.Locate(found.flaw)
	case len(found.wants) == 0:
		return found.artifact, nil
	case ref.Verified():
		return nil, ref.Locate(uncovered(found.wants))
	}
	name := "dependencies of " + found.artifact.Digest + " of " + ref.String()
	// As with the chart itself, it goes on for the others when the caller leaves.
	complete, err := flight.Board(ctx, s.remote.flights, s.remote.route(ctx, name, ref), func(ctx context.Context) (*Artifact, error) {
		ctx, cancel := context.WithTimeout(ctx, flightTimeout)
		defer cancel()
		return s.putTogether(ctx, ref, found)
	})
	if err != nil {
		return nil, conclude(ctx, ref, err)
	}
	return complete, nil
}

// putTogether fetches what is missing, and makes one chart of all, once.
func (s *Sources) putTogether(ctx context.Context, ref reference.Reference, found verdict) (*Artifact, error) {
	gatherer := &gatherer{Sources: s, root: ref}
	gatherer.left.Store(dependency.Max)
	digest := found.artifact.Digest
	parts, err := gatherer.gather(ctx, level{digest: digest, above: []string{digest}}, found.wants)
	if err != nil {
		return nil, err
	}
	held := dependency.Assembly(digest, parts)
	result, err, _ := s.unpacking.Do(held, func() (any, error) {
		if known, found := s.known.Get(held); found {
			return known, nil
		}
		leave, err := s.place(ctx) // it looks into archives
		if err != nil {
			return verdict{}, err
		}
		defer leave()
		whole := verdict{}
		if files, err := dependency.Assemble(found.artifact.Files, parts, s.limits); err != nil {
			whole.refusal = err
		} else {
			whole.artifact = &Artifact{Digest: digest, Files: files}
		}
		s.known.Put(held, whole)
		return whole, nil
	})
	if err != nil {
		return nil, err
	}
	whole := result.(verdict)
	return whole.artifact, whole.refusal
}

// uncovered is the error of a signed chart with dependencies that nobody signed.
func uncovered(wants []dependency.Want) *failure.Error {
	names := make([]string, 0, len(wants))
	for _, w := range wants {
		names = append(names, failure.Quote(w.Name+" "+w.Version))
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], "...")
	}
	failed := failure.New(failure.SignatureMissing, "the signature doesn't cover the dependencies that Chart.yaml names and charts/ doesn't have (%s); "+
		"package the chart with its dependencies (`helm package --dependency-update`) and sign it, or take verify away", strings.Join(names, ", "))
	failed.RetryAfter = failure.MaxNotFound // as verify may be taken away
	return failed
}
