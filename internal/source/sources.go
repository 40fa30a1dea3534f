// SPDX-License-Identifier: Apache-2.0

// Package source gets charts, and other artifacts, from where a reference says they are.
//
// [Sources.Resolve] says which content a reference means now, as a digest. [Sources.Fetch]
// gets the content with the digest. Both ask a source once for all callers (package
// answers), as whoever the reference lets them (package auth). A kind of source is a
// [backend] (packages oci, helm, github, git, flux and web), a directory of this machine (package
// local), or an object of the management cluster (package object).
//
// Downloaded content is kept on disk by address, credentials and digest (package store).
// It is hostile: worker processes open it (package opener).
package source

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/flux"
	"github.com/cluster-chandler/chandler/internal/source/git"
	"github.com/cluster-chandler/chandler/internal/source/github"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/local"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
)

const (
	// contentBytes of unpacked charts are those of a large fleet: it has few different ones.
	contentBytes = 128 << 20 // bytes
	// listBytes holds the versions of some thousand artifacts, or of two very large ones.
	listBytes = 32 << 20 // bytes
	// remembered has room for some thousand answers of other kinds, which are a line each.
	remembered = 2 << 20 // bytes
	ofLine     = 448     // bytes, with the question
)

// Options of New.
type Options struct {
	// Opener looks into what was fetched.
	Opener opener.Opener
	// ArtifactRoot is the directory that chart.path is relative to. Empty: chart.path is refused.
	ArtifactRoot string
	// Client reads ConfigMaps and Secrets of the management cluster. It must not
	// cache: their content may be large and secret.
	Client client.Reader
	// Metadata reads their PartialObjectMetadata, from a cache that watches.
	// The object's version in them decides whether Client has to be asked. Nil: Client is asked
	// each time.
	Metadata client.Reader
	// Flux reads objects of Flux, of kinds that it watches. Nil: none is known.
	Flux flux.Objects
	// CredentialsDir has the instance's own credentials for registries and
	// repositories, for charts that name no Secret. It may be missing, and may change.
	CredentialsDir string
	// RequireSignaturesBy is the directory of keys by one of which all from other hosts and
	// objects has to be signed. Empty: nothing has to.
	RequireSignaturesBy string
	// AllowLoopback lets charts come from servers on this host.
	AllowLoopback bool
	// UserAgent of requests to registries and repositories.
	UserAgent string
	// Limits of each chart.
	Limits artifact.Limits
	// Memory is where answers count, and what is kept of them. Nil counts nothing.
	Memory *budget.Budget
	// Store keeps what was fetched from other hosts. Nil: it is kept in memory only.
	Store *store.Store
	// Clock tells when to ask again. Defaults to the real one.
	Clock clock.Clock
}

// Sources resolves and fetches artifacts. Its methods may be called concurrently.
type Sources struct {
	Options
	local    *local.Tree // nil: disabled
	objects  *object.Reader
	access   *auth.Access
	trust    *policy.Reader
	required policy.Required
	indexes  *helm.Indexes
	releases *github.Releases
	commits  *git.Commits

	digests  *answers.Memory[string]           // that references were resolved to
	lists    *answers.Memory[[]string]         // of versions
	searches searches                          // in lists
	verified *answers.Memory[string]           // versions that signed texts say
	contents *answers.Memory[*unpack.Artifact] // unpacked
	refused  *budget.Cache[string, bool]       // digests that callers can't use, with the question
}

// costOfLine returns the cost of an answer that is a line.
func costOfLine[T any](T) int64 { return ofLine }

// New checks the options and makes the sources.
func New(options Options) (*Sources, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Limits = options.Limits.WithDefaults()
	s := &Sources{
		Options:  options,
		required: policy.Required(options.RequireSignaturesBy),
		indexes:  helm.NewIndexes(options.Opener, options.Clock, options.Memory),
		releases: github.NewReleases(options.Clock, options.Memory),
		commits:  git.NewCommits(options.Opener, options.Limits, options.Clock, options.Memory),
		digests:  answers.New(options.Clock, options.Memory, remembered, costOfLine[string]),
		lists:    answers.New(options.Clock, options.Memory, listBytes, answers.Strings),
		searches: searches{budget.NewCache[string](options.Memory, remembered, costOfSearches)},
		verified: answers.New(options.Clock, options.Memory, remembered, costOfLine[string]),
		contents: answers.New(options.Clock, options.Memory, contentBytes, (*unpack.Artifact).Bytes),
		refused:  budget.NewCache[string](options.Memory, remembered, costOfLine[bool]),
	}
	s.objects = object.NewReader(options.Client, options.Metadata)
	s.trust = policy.NewReader(s.objects, options.Memory)
	s.access = auth.New(auth.Options{
		Objects: s.objects, CredentialsDir: options.CredentialsDir, AllowLoopback: options.AllowLoopback,
		UserAgent: options.UserAgent, Limits: options.Limits, Memory: options.Memory, Clock: options.Clock,
	})
	if options.ArtifactRoot != "" {
		var err error
		if s.local, err = local.New(options.ArtifactRoot, options.Limits, options.Clock, options.Memory); err != nil {
			return nil, fmt.Errorf("opening the artifact root: %w", err)
		}
	}
	return s, nil
}

// Watch calls notify with each chart.path that was resolved before and has changed since;
// see [local.Tree.Watch].
func (s *Sources) Watch(ctx context.Context, notify func(path string)) error {
	return s.local.Watch(ctx, notify)
}

// Waiting returns a context for the calls of one reconcile: they don't wait long for a slow
// source, and wake is called when it has answered.
func (s *Sources) Waiting(ctx context.Context, object string, wake func()) context.Context {
	return answers.WithWaiter(ctx, object, s.Clock.Now(), wake)
}

// Version identifies the content that the reference means now, without any request: while it is the
// same, so is the digest. It is "" where that takes a look, as of a path, and while the object
// isn't known. For a chart in a registry or repository it is the chart's address: an exact version
// is taken to stay the same.
func (s *Sources) Version(ctx context.Context, ref reference.Reference) string {
	switch {
	case ref.Bundle != nil && ref.Bundle.Digest == "":
		return ""
	case ref.Bundle != nil:
		return ref.Bundle.Digest + " " + ref.Chart.Path + ref.Kind.Suffix()
	case ref.Remote():
		return ref.Address() + ref.Kind.Suffix()
	case ref.Chart.Path != "":
		return ""
	}
	object := ref.Object()
	version := s.objects.Version(ctx, object)
	if version == "" {
		return ""
	}
	return version + "/" + object.Key
}

// Keys identifies the credentials for the reference's source, the keys that verify its
// signatures, and the artifact of Flux, as far as they are in objects that the reference names. It
// takes no request once these are watched. While they are the same, so is this; that they change is an event.
func (s *Sources) Keys(ctx context.Context, ref reference.Reference) string {
	var versions strings.Builder
	for _, object := range ref.Objects() {
		versions.WriteString(s.objects.Version(ctx, object) + ",")
	}
	if ref.Traits().InCluster {
		versions.WriteString(flux.New(ref, s.Flux).Key(ctx))
	}
	return versions.String()
}
