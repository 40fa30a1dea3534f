// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/web"
)

// backend is one artifact on another host. Some are a [catalogue], or [signed], besides.
type backend interface {
	// Resolve asks for the digest of its content, and returns that too if it had to be read.
	Resolve(ctx context.Context, c *auth.Client) (digest string, got artifact.Content, err error)
	// Fetch asks for the content with that digest, and verifies it.
	Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error)
}

// Fetch returns the content with the digest, which has to be what Resolve said of the same
// reference. All who may have it share one download, and one unpacking. Errors are of type
// [*failure.Error], but for that of ctx.
//
// To know a digest gives no right to the content: it is shared by those alone who ask at the
// same address with the same credentials.
func (s *Sources) Fetch(ctx context.Context, ref reference.Reference, digest string) (*Artifact, error) {
	got, err := s.fetch(ctx, ref, digest)
	if err != nil {
		return nil, s.rejected(ctx, ref, digest, conclude(ctx, ref, err))
	}
	if ref.Kind != artifact.KindBundle { // of which paths may be wrong
		s.accept(ctx, ref, digest)
	}
	return got, nil
}

func (s *Sources) fetch(ctx context.Context, ref reference.Reference, digest string) (*Artifact, error) {
	if err := s.check(ref); err != nil {
		return nil, err
	}
	var says string // of its version, by the signed text
	if s.required.For(ref) || ref.Chart.Verify != nil {
		var err error
		if says, err = s.verify(ctx, ref, digest); err != nil {
			return nil, err
		}
	}
	q := s.question(ctx, digest+ref.Kind.Suffix()+" from "+s.scope(ctx, ref), ref)
	got, err := s.contents.Ask(ctx, q, func(ctx context.Context) (*Artifact, error) {
		content, err := s.content(ctx, ref, digest)
		if err != nil {
			return nil, err
		}
		if content.Digest() != digest {
			return nil, ref.Changed()
		}
		return s.unpack(ctx, content, ref.Kind)
	})
	if err != nil {
		return nil, err
	}
	return got, s.accepts(ref, got, says)
}

// check reports what is wrong with the reference, or that this instance has no such source.
func (s *Sources) check(ref reference.Reference) error {
	at, set := ref.Chart, 0
	for _, isSet := range []bool{at.Path != "", at.ConfigMap != nil, at.Secret != nil, at.OCI != nil, at.Helm != nil, at.HTTP != nil, at.GitHub != nil} {
		if isSet {
			set++
		}
	}
	switch {
	case set != 1:
		return failure.New(failure.ArtifactInvalid, "set exactly one of path, configMap, secret, oci, helm, http and github")
	case ref.Bundle != nil:
		return nil
	case ref.Chart.Path != "" && s.local == nil:
		return failure.New(failure.SourceDisabled, "this provider has no artifact root; start it with --artifact-root, or use another source")
	case ref.Chart.Path != "":
		return nil
	case ref.Namespace == "":
		return failure.New(failure.ArtifactInvalid, "the object that refers to it has no namespace; use path")
	case !ref.Remote() && s.objects == nil:
		return failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; use another source")
	}
	return nil
}

// scope names who may have the same content as the reference.
func (s *Sources) scope(ctx context.Context, ref reference.Reference) string {
	switch {
	case ref.Bundle != nil:
		return ref.String() + ", " + s.scope(ctx, reference.BundleOf(ref.Namespace, ref.Bundle))
	case ref.Remote():
		return cmp.Or(s.access.Scope(ctx, ref), ref.String()) // of a Secret that isn't known, those who name it
	case s.objects != nil && ref.Chart.Path == "":
		return ref.String() + " at " + s.objects.Version(ctx, ref.Object())
	}
	return ref.String()
}

// content returns what the reference means now. On another host, or on disk, that is the
// content with the digest.
func (s *Sources) content(ctx context.Context, ref reference.Reference, digest string) (got artifact.Content, err error) {
	if ref.Bundle != nil {
		bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
		if err != nil {
			return got, err
		}
		return bundle.content(ref.Chart.Path, ref.Kind)
	}
	if ref.Remote() {
		if got, found := s.stored(ctx, ref, digest); found {
			return got, nil
		}
		err = s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, b backend) (err error) {
			got, err = b.Fetch(ctx, c, digest)
			return err
		})
		if err == nil {
			s.downloaded(ctx, ref, got)
		}
		return got, err
	}
	got, err = counted(s, ref, func() (artifact.Content, error) {
		if ref.Chart.Path != "" {
			return s.local.Fetch(ref.Chart.Path, ref.Kind)
		}
		return s.readObject(ctx, ref)
	})
	if err == nil {
		s.countBytes(ref, got)
	}
	return got, err
}

// visit calls the backend of the reference with a client, and counts that. Only what was
// sent counts as a request: credentials may be missing, and an index may be at hand.
func (s *Sources) visit(ctx context.Context, ref reference.Reference, call func(context.Context, *auth.Client, backend) error) error {
	started := s.Clock.Now()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { sent.Store(true) }})
	client, err := s.access.Client(ctx, ref)
	if err == nil {
		err = client.Explain(ctx, call(traced, client, s.backendOf(ref)))
	}
	s.count(ref, started, sent.Load(), err)
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactChanged {
		s.digests.Forget(s.digestQuestion(ctx, ref).Key) // for those who ask from now on
	}
	return err
}

// ask asks the source of the reference, once for all callers.
func ask[T any](ctx context.Context, s *Sources, memory *outcome.Memory[T], q outcome.Question, ref reference.Reference, call func(context.Context, *auth.Client, backend) (T, error)) (T, error) {
	return memory.Ask(ctx, q, func(ctx context.Context) (got T, err error) {
		err = s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, b backend) (err error) {
			c.NotBefore = q.NotBefore
			got, err = call(ctx, c, b)
			return err
		})
		return got, err
	})
}

// backendOf returns the backend of a reference to another host, nil of any other. A new
// protocol gets its line here.
func (s *Sources) backendOf(ref reference.Reference) backend {
	switch {
	case ref.Chart.OCI != nil:
		return oci.New(ref)
	case ref.Chart.HTTP != nil:
		return web.New(ref)
	case ref.Chart.GitHub != nil:
		return github.New(ref, s.releases)
	case ref.Chart.Helm != nil:
		return helm.New(ref, s.indexes)
	}
	return nil
}

// question names what is asked of the reference's source. Another credential makes another
// question: what came of the former says nothing.
func (s *Sources) question(ctx context.Context, what string, ref reference.Reference) outcome.Question {
	if ref.Remote() {
		what += " as " + s.access.Identity(ctx, ref)
	}
	return outcome.Question{Key: what}
}

// downloaded counts what a source gave, and keeps it on disk: an archive, or each of a
// bundle's files under its own digest, and then the manifest that lists them.
func (s *Sources) downloaded(ctx context.Context, ref reference.Reference, got artifact.Content) {
	s.countBytes(ref, got)
	scope := s.access.Scope(ctx, ref)
	for _, file := range got.Files {
		s.Store.Put(scope, artifact.DigestOf(file.Data), file.Data)
	}
	data := got.Archive
	if got.Manifest != nil {
		data = got.Manifest
	}
	s.Store.Put(scope, got.Digest(), data)
}

// stored returns what is on disk, in whole: if a file of a bundle is missing, or was
// damaged, all of it is downloaded again.
func (s *Sources) stored(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, bool) {
	scope := s.access.Scope(ctx, ref)
	data, found := s.Store.Get(scope, digest)
	if !found || ref.Kind != artifact.KindBundle || artifact.IsCompressed(data) {
		return artifact.Content{Archive: data}, found
	}
	parts, listed, err := layout.Parts(data, s.Limits)
	if !listed || err != nil {
		return artifact.Content{Archive: data}, true // no archive either: that is found out when it is unpacked
	}
	got := artifact.Content{Manifest: data, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		file, found := s.Store.Get(scope, p.Digest)
		if !found {
			return artifact.Content{}, false
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: file})
	}
	return got, true
}
