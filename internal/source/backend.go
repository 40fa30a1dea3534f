// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/oci"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/web"
)

// backend is one artifact on another host.
type backend interface {
	// Resolve asks for the digest of its content, and returns that too if it had to be read.
	Resolve(ctx context.Context, c *auth.Client) (digest string, got artifact.Content, err error)
	// Fetch asks for the content with that digest, and verifies it.
	Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error)
}

// catalogue is a backend that tells which versions of an artifact there are.
type catalogue interface {
	// Versions asks for all versions. Of charts they are semantic ones, of anything else
	// whatever releases are called. None is longer than versions.MaxLength.
	Versions(ctx context.Context, c *auth.Client) ([]string, error)
}

// signed is a backend that has signatures of its content.
type signed interface {
	// Verify checks that the content with the digest is signed as the policy wants.
	Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) error
}

// backendOf returns the backend of a reference to another host, nil of any other. A new
// protocol gets its line here.
func (s *Sources) backendOf(ref reference.Reference) backend {
	switch {
	case ref.Chart.OCI != nil:
		return oci.New(ref, s.Opener)
	case ref.Chart.HTTP != nil:
		return web.New(ref)
	case ref.Chart.GitHub != nil:
		return github.New(ref, s.releases)
	case ref.Chart.Helm != nil:
		return helm.New(ref, s.indexes)
	}
	return nil
}

// check reports what is wrong with the reference, or that this instance has no such source.
func (s *Sources) check(ref reference.Reference) error {
	set := 0
	for _, isSet := range []bool{ref.Chart.Path != "", ref.Chart.ConfigMap != nil, ref.Chart.Secret != nil, ref.Chart.OCI != nil, ref.Chart.Helm != nil, ref.Chart.HTTP != nil, ref.Chart.GitHub != nil} {
		if isSet {
			set++
		}
	}
	switch {
	case set != 1:
		return failure.New(failure.ArtifactInvalid, "set exactly one of path, configMap, secret, oci, helm, http and github")
	case ref.Bundle != nil && ref.Chart.Path == "":
		return failure.New(failure.ArtifactInvalid, "a bundle has artifacts by their path; set path")
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

// question names what is asked of the reference's source. Another credential makes another
// question: what came of the former says nothing.
func (s *Sources) question(ctx context.Context, what string, ref reference.Reference) outcome.Question {
	q := outcome.Question{Key: what}
	if ref.Remote() {
		q.Key += " as " + s.access.Identity(ctx, ref)
	}
	return q
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
