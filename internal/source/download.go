// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/flux"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
	"github.com/cluster-chandler/chandler/internal/source/web"
)

// backend is one artifact on another host. Some are a [catalogue], or [signed], besides.
type backend interface {
	// Resolve asks for the digest of its content, and returns that too if it had to be read.
	Resolve(ctx context.Context, c *auth.Client) (digest string, got artifact.Content, err error)
	// Fetch asks for the content with that digest, and verifies it.
	Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error)
}

// offering is a host that says what it has under a name, before that is read.
type offering interface {
	catalogue
	signed
	Offer(ctx context.Context, c *auth.Client) (artifact.Offer, error)
}

// offered is the backend of an offering.
type offered struct{ offering }

// Resolve implements backend.
func (o offered) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	offer, err := o.Offer(ctx, c)
	if err != nil {
		return "", artifact.Content{}, err
	}
	return offer.Resolve(ctx)
}

// Fetch implements backend.
func (o offered) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	offer, err := o.Offer(ctx, c)
	if err != nil {
		return artifact.Content{}, err
	}
	return offer.Fetch(ctx, digest)
}

// load returns the content with the digest as files. On disk it is kept for the scope.
func (s fetching) load(ctx context.Context, ref reference.Reference, scope, digest string) (*unpack.Artifact, error) {
	var content artifact.Content
	var err error
	switch {
	case ref.Bundle != nil:
		content, err = s.readInBundle(ctx, ref)
	case ref.Remote():
		content, err = s.download(ctx, ref, scope, digest)
	default:
		content, err = s.atHand(ctx, ref, func() (artifact.Content, error) { return s.readAtHand(ctx, ref) })
	}
	if err != nil {
		return nil, err
	}
	if content.Digest() != digest {
		return nil, ref.Changed()
	}
	return s.unpacker().Unpack(ctx, content, ref.Kind)
}

// download returns the content with the digest: what is on disk, or else what the host sends.
func (s fetching) download(ctx context.Context, ref reference.Reference, scope, digest string) (artifact.Content, error) {
	found := false
	got, err := s.atHand(ctx, ref, func() (got artifact.Content, err error) {
		got, found = disk{s.Store, s.Limits}.read(ref, scope, digest)
		return got, nil
	})
	if err != nil || found {
		return got, err
	}
	from := s.backendOf(ref)
	got, err = visit(ctx, s.Sources, ref, func(ctx context.Context, c *auth.Client) (artifact.Content, error) { return from.Fetch(ctx, c, digest) })
	if err == nil {
		disk{s.Store, s.Limits}.put(ref, scope, got)
	}
	return got, err
}

// readAtHand returns what a path, or an object, has now.
func (s fetching) readAtHand(ctx context.Context, ref reference.Reference) (artifact.Content, error) {
	got, err := counted(s.Clock, ref, func() (artifact.Content, error) {
		if ref.Chart.Path != "" {
			return s.local.Fetch(ref.Chart.Path, ref.Kind)
		}
		return readObject(ctx, s.objects, ref)
	})
	if err == nil {
		countBytes(ref, got)
	}
	return got, err
}

// atHand reads content of this machine once there is memory for the most that it may be. It counts until the request ends,
// as answers of hosts do.
func (s fetching) atHand(ctx context.Context, ref reference.Reference, read func() (artifact.Content, error)) (artifact.Content, error) {
	most := max(s.Limits.ArchiveBytes, s.Limits.TotalBytes)
	claim := s.Memory.Claim(budget.Tenant{Namespace: ref.Namespace}, most)
	if err := claim.Grow(ctx, most); err != nil {
		return artifact.Content{}, failure.NoMemory(ref.Namespace)
	}
	got, err := read()
	claim.Shrink(got.Bytes())
	claim.Release(ctx)
	return got, err
}

// visit asks the host of the reference, and counts that. Only what was sent counts as a request:
// credentials may be missing, and an index may be at hand.
func visit[T any](ctx context.Context, s *Sources, ref reference.Reference, call func(context.Context, *auth.Client) (T, error)) (T, error) {
	started := s.Clock.Now()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { sent.Store(true) }})
	got, err := auth.Ask(traced, s.access, ref, call)
	if sent.Load() {
		count(ref, started, s.Clock.Now(), err)
	}
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactChanged {
		s.digests.Forget(s.digestQuestion(ctx, ref).Key) // for those who ask from now on
	}
	return got, err
}

// ask asks the source of the reference, once for all callers.
func ask[T any](ctx context.Context, s *Sources, memory *answers.Memory[T], q answers.Question, ref reference.Reference, call func(context.Context, *auth.Client) (T, error)) (T, error) {
	return memory.Ask(ctx, q, func(ctx context.Context) (T, error) {
		return visit(ctx, s, ref, func(ctx context.Context, c *auth.Client) (T, error) {
			c.NotBefore = q.NotBefore
			return call(ctx, c)
		})
	})
}

// backendOf returns the backend of a reference to another host, nil of any other. A new
// protocol gets its line here.
func (s *Sources) backendOf(ref reference.Reference) backend {
	switch ref.Type() {
	case "oci":
		return oci.New(ref)
	case "http":
		return web.New(ref)
	case "github":
		return offered{github.New(ref, s.releases)}
	case "flux":
		return flux.New(ref, s.Flux)
	case "git":
		return s.commits.In(ref, s.bundleOf)
	case "helm":
		return offered{helm.New(ref, s.indexes)}
	}
	return nil
}
