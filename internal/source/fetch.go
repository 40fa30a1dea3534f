// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"
)

const (
	// fetchTimeout ends a fetch that nobody may be waiting for any more.
	fetchTimeout = time.Minute
	// unpackers is how many charts are unpacked at once. Each may hold
	// Limits.TotalBytes, and uses a CPU. Slow sources don't take a place.
	unpackers = 2
)

// verdict is what unpacking content with a certain digest came to.
type verdict struct {
	artifact *Artifact
	refusal  error
}

// Fetch returns the content with the digest, which has to be what Resolve said of
// the same reference. Concurrent calls for one digest share one fetch. Errors are
// of type [*Error], but for that of ctx.
func (s *Sources) Fetch(ctx context.Context, ref Reference, digest string) (*Artifact, error) {
	found, known := s.known.get(digest)
	if !known {
		var err error
		if found, err = s.share(ctx, ref, digest); err != nil {
			return nil, conclude(ctx, ref, err)
		}
	}
	if found.refusal != nil {
		return nil, ref.locate(found.refusal)
	}
	if err := ref.accepts(found.artifact); err != nil {
		return nil, ref.locate(err)
	}
	return found.artifact, nil
}

// share lets one of the concurrent callers fetch for all.
func (s *Sources) share(ctx context.Context, ref Reference, digest string) (verdict, error) {
	found, leader, err := s.fly(ctx, digest, ref, digest)
	if err != nil && leader.String() != ref.String() {
		// What went wrong elsewhere, in another namespace even, says nothing of this reference.
		found, _, err = s.fly(ctx, digest+" "+ref.String(), ref, digest)
	}
	return found, err
}

// fly joins the flight of that name, or starts it. It returns whose reference was fetched.
func (s *Sources) fly(ctx context.Context, name string, ref Reference, digest string) (verdict, Reference, error) {
	type landing struct {
		verdict
		leader Reference
	}
	results := s.flights.DoChan(name, func() (any, error) {
		// The flight goes on for the others when the caller that started it leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		found, err := s.fetch(ctx, ref, digest)
		return landing{found, ref}, err
	})
	select {
	case <-ctx.Done():
		return verdict{}, ref, ctx.Err()
	case <-s.patience(ref):
		return verdict{}, ref, pending()
	case result := <-results:
		landed := result.Val.(landing)
		return landed.verdict, landed.leader, result.Err
	}
}

// fetch reads, verifies and unpacks.
func (s *Sources) fetch(ctx context.Context, ref Reference, digest string) (found verdict, err error) {
	// This runs on a goroutine of its own, where controller-runtime can't recover:
	// one chart that makes a parser panic must not end the process for all others.
	defer func() {
		if panicked := recover(); panicked != nil {
			found, err = verdict{}, failure(ReasonArtifactInvalid, "reading it panicked: %v", panicked)
		}
	}()
	if found, known := s.known.get(digest); known { // by a flight that ended just before this one began
		return found, nil
	}
	from, err := s.origin(ref)
	if err != nil {
		return verdict{}, err
	}
	got, err := from.fetch(ctx, ref, digest)
	if err != nil {
		return verdict{}, err
	}
	if got.digest() != digest {
		return verdict{}, changed()
	}
	select {
	case s.unpack <- struct{}{}:
		defer func() { <-s.unpack }()
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	}
	files, err := got.unpack(s.limits)
	if err != nil {
		found = verdict{refusal: err}
	} else {
		found = verdict{artifact: &Artifact{Digest: digest, Files: files}}
	}
	s.known.put(digest, found)
	return found, nil
}

// bytes estimates the memory that the verdict holds.
func (v verdict) bytes() int64 {
	const overhead = 128 // of a file, or of a refusal's text
	size := int64(overhead)
	if v.artifact != nil {
		for _, file := range v.artifact.Files {
			size += int64(len(file.Name)+len(file.Data)) + overhead
		}
	}
	return size
}

// changed is the error of content that was overwritten between two looks at it.
func changed() *Error {
	return failure(ReasonArtifactChanged, "the content changed while it was read; it will be read again")
}
