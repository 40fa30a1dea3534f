// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/internal/source/tree"
)

const (
	// DefaultCacheBytes holds the charts of a large fleet: it has few different ones.
	DefaultCacheBytes = 128 << 20 // bytes
	// remembered is how many references an origin remembers.
	remembered = 4096
)

// Artifact is a chart's content, unpacked in memory and checked. It is shared: don't change it.
type Artifact struct {
	// Digest identifies the content; see [artifact.Content.Digest].
	//
	// A chart whose dependencies were fetched has its own digest, that of the chart as
	// it is published; see docs/design/dependencies.md.
	Digest string
	// Files of the chart, sorted by name, without a byte order mark. Of what isn't a
	// chart, their names are those in the archive or directory, and none is left out
	// but git's own.
	Files []artifact.File
}

// Options of New.
type Options struct {
	// ArtifactRoot is the directory that chart.path is relative to. Empty: chart.path is refused.
	ArtifactRoot string
	// Client reads ConfigMaps and Secrets of the management cluster. It must not
	// cache: their content may be large and secret. Nil: both are refused.
	Client client.Reader
	// Metadata reads their PartialObjectMetadata, from a cache that watches.
	// What it says of an object's version decides whether Client has to be asked.
	// Nil: Client is asked each time.
	Metadata client.Reader
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
	// CacheBytes is how much of unpacked charts is kept in memory. Defaults to 128 MiB.
	CacheBytes int64
	// Store keeps what was fetched from other hosts. Nil: it is kept in memory only.
	Store *store.Store
	// Clock tells when files changed "just now". Defaults to the real one.
	Clock clock.Clock
}

// Sources resolves and fetches charts. Its methods may be called concurrently.
type Sources struct {
	limits  artifact.Limits
	local   *tree.Tree // nil: disabled
	objects *objects   // nil: disabled
	remote  *remote
	clock   clock.Clock

	known    *lru.Cache[string, verdict] // by digest
	grants   *grants
	verifier *verifier
	// inBundles are digests of what is in bundles, by those of the bundles and paths.
	inBundles *lru.Cache[string, string]
	unpack    chan struct{}      // a place for each chart that is being unpacked
	unpacking singleflight.Group // by digest and kind
}

// origin is one kind of place that charts come from. Its errors needn't be
// located: see [reference.Reference.Locate].
type origin interface {
	// resolve says which content the reference means now, by its digest.
	resolve(ctx context.Context, ref reference.Reference) (digest string, err error)
	// fetch reads the content with that digest, or what is there in its place:
	// the caller verifies the digest before it looks into the content.
	fetch(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, error)
}

// New checks the options and makes the sources.
func New(options Options) (*Sources, error) {
	if options.CacheBytes <= 0 {
		options.CacheBytes = DefaultCacheBytes
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	limits := options.Limits.WithDefaults()
	shared := newGrants(options.Store)
	var reader *object.Reader
	if options.Client != nil {
		reader = object.NewReader(options.Client, options.Metadata)
	}
	sources := &Sources{
		grants: shared,
		limits: limits,
		known:  lru.New[string](options.CacheBytes, verdict.bytes),

		inBundles: lru.New[string](remembered, lru.One[string]),

		unpack: make(chan struct{}, unpackers),
		remote: newRemote(options, reader, limits, shared),
		clock:  options.Clock,
	}
	sources.verifier = newVerifier(reader, sources.remote, policy.Required(options.RequireSignaturesBy))
	if reader != nil {
		sources.objects = newObjects(reader)
	}
	if options.ArtifactRoot != "" {
		root, err := tree.New(options.ArtifactRoot, limits, options.Clock)
		if err != nil {
			return nil, fmt.Errorf("opening the artifact root: %w", err)
		}
		sources.local = root
	}
	return sources, nil
}

// Resolve says which content the reference means now, as a digest for Fetch.
// Errors are of type [*failure.Error], but for that of ctx.
func (s *Sources) Resolve(ctx context.Context, ref reference.Reference) (digest string, err error) {
	if digest := ref.PinnedDigest(); digest != "" {
		return digest, nil
	}
	from, err := s.origin(ref)
	if err == nil {
		digest, err = from.resolve(ctx, ref)
	}
	if err == nil {
		err = ref.Expects(digest)
	}
	if err != nil {
		return "", conclude(ctx, ref, err)
	}
	return digest, nil
}

// conclude locates an error, and leaves that of an ended context alone: it isn't the source's.
func conclude(ctx context.Context, ref reference.Reference, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return err
	}
	return ref.Locate(err)
}

// Version identifies what the reference means now, without any request: while it
// is the same, so is the digest. It is "" where that takes a look, as of a path, and
// while the object isn't known. Of a chart in a registry or repository it is its
// address: an exact version is taken to stay what it was.
func (s *Sources) Version(ctx context.Context, ref reference.Reference) string {
	if ref.Bundle != nil {
		return ref.VersionInBundle()
	}
	if ref.Remote() {
		return ref.Address() + ref.Kind.Suffix()
	}
	if s.objects == nil || ref.Chart.ConfigMap == nil && ref.Chart.Secret == nil {
		return ""
	}
	object := ref.Object()
	version := s.objects.Version(ctx, object)
	if version == "" {
		return ""
	}
	return version + "/" + object.Key
}
