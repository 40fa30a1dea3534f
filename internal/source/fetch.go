// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

const (
	// fetchTimeout ends a request to a source, with all of its answer.
	fetchTimeout = time.Minute
	// flightTimeout ends a fetch that nobody may be waiting for any more. It may take
	// two requests: one for all, and one of its own where that didn't do.
	flightTimeout = 2*fetchTimeout + 10*time.Second
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
// the same reference. Concurrent calls for one reference share one fetch. Errors
// are of type [*failure.Error], but for that of ctx.
//
// To know a digest gives no right to the content: a reference gets it once its own
// source has given it, or has said that it would; see grants.
func (s *Sources) Fetch(ctx context.Context, ref reference.Reference, digest string) (*Artifact, error) {
	found, err := s.accept(ctx, ref, digest)
	if err != nil {
		return nil, s.refuse(ctx, ref, digest, err)
	}
	if ref.Kind != artifact.KindBundle { // of which paths may be wrong
		s.remote.refused.Used(ref.DigestQuestion(), digest)
	}
	return found.artifact, nil
}

// accept fetches the content with the digest, and checks it.
func (s *Sources) accept(ctx context.Context, ref reference.Reference, digest string) (verdict, error) {
	if err := s.verifier.verify(ctx, ref, digest); err != nil {
		return verdict{}, conclude(ctx, ref, err)
	}
	found, known := s.recall(ctx, ref, digest)
	if !known {
		var err error
		if found, err = s.fly(ctx, ref, digest); err != nil {
			return verdict{}, conclude(ctx, ref, err)
		}
	}
	if found.refusal != nil {
		return verdict{}, ref.Locate(found.refusal)
	}
	if err := accepts(ref, found.artifact.Files, s.verifier.required.For(ref)); err != nil {
		return verdict{}, ref.Locate(err)
	}
	return found, nil
}

// recall returns what is in memory, if the reference may have it.
func (s *Sources) recall(ctx context.Context, ref reference.Reference, digest string) (verdict, bool) {
	found, known := s.known.Get(ref.Held(digest))
	if !known || !s.grants.has(digest, s.title(ctx, ref)) {
		return verdict{}, false
	}
	return found, true
}

// fly joins the flight for the reference, or starts it.
func (s *Sources) fly(ctx context.Context, ref reference.Reference, digest string) (verdict, error) {
	if !ref.Remote() && ref.Bundle == nil { // what is at hand is waited for
		ctx = flight.WithPatience(ctx, flightTimeout)
	}
	return flight.Board(ctx, s.remote.flights, s.remote.route(ctx, digest+" of "+ref.String(), ref), func(ctx context.Context) (verdict, error) {
		ctx, cancel := context.WithTimeout(ctx, flightTimeout)
		defer cancel()
		return s.fetch(ctx, ref, digest)
	})
}

// fetch reads, verifies and unpacks.
func (s *Sources) fetch(ctx context.Context, ref reference.Reference, digest string) (verdict, error) {
	if found, known := s.recall(ctx, ref, digest); known { // by a flight that ended just before this one began
		return found, nil
	}
	from, err := s.origin(ref)
	if err != nil {
		return verdict{}, err
	}
	title := s.title(ctx, ref) // if the credentials change meanwhile, it is that of the former
	if found, known := s.known.Get(ref.Held(digest)); known && ref.Remote() && s.remote.confirms(ctx, ref, digest) {
		s.grants.add(digest, title)
		return found, nil
	}
	ctx, carried := s.remote.room.Carry(ctx)
	defer carried.Drop() // when it is unpacked
	got, err := from.fetch(ctx, ref, digest)
	if err != nil {
		return verdict{}, err
	}
	if got.Digest() != digest {
		return verdict{}, ref.Changed()
	}
	found, err := s.judge(ctx, ref, got, digest)
	if err == nil {
		s.grants.add(digest, title)
	}
	return found, err
}

// judge unpacks content that has the digest, unless that was done before. Those who
// come with equal content at the same time share one unpacking.
func (s *Sources) judge(ctx context.Context, ref reference.Reference, got artifact.Content, digest string) (verdict, error) {
	held := ref.Held(digest)
	found, err, _ := s.unpacking.Do(held, func() (any, error) {
		if found, known := s.known.Get(held); known {
			return found, nil
		}
		leave, err := s.place(ctx)
		if err != nil {
			return verdict{}, err
		}
		defer leave()
		unpackings.Inc()
		got.Kind = ref.Kind
		found := verdict{}
		if files, err := got.Unpack(s.limits); err != nil {
			found.refusal = err
		} else {
			found.artifact = &Artifact{Digest: digest, Files: files}
		}
		s.known.Put(held, found)
		return found, nil
	})
	return found.(verdict), err
}

// place waits until there is a place to unpack at, and takes it. Who gets it leaves it
// soon: whatever is unpacked, and looked into, is bounded.
func (s *Sources) place(ctx context.Context) (leave func(), err error) {
	select {
	case s.unpack <- struct{}{}:
		return func() { <-s.unpack }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
