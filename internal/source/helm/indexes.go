// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
)

const (
	// freshIndex is how long an index is used without asking whether it changed.
	freshIndex = 30 * time.Second
	// indexCache is how much of indexes is kept in memory: about 200,000 versions.
	indexCache = 32 << 20 // bytes
)

// Indexes are what was read of Helm repositories. One is read for all charts of a repository.
type Indexes struct {
	opener opener.Opener
	clock  clock.Clock
	known  *outcome.Memory[*index] // by URL and credential
}

// index has the versions of a repository's charts, by the charts' names.
type index struct {
	charts map[string][]opener.ChartVersion
	bytes  int64
}

// NewIndexes has indexes read by the opener.
func NewIndexes(o opener.Opener, clock clock.Clock) *Indexes {
	return &Indexes{
		opener: o, clock: clock,
		known: outcome.New(clock, indexCache, func(i *index) int64 {
			if i == nil {
				return 1
			}
			return i.bytes
		}),
	}
}

// of returns the index of a repository, as it was a moment ago, or since c.NotBefore.
func (s *Indexes) of(ctx context.Context, c *auth.Client) (*index, error) {
	q := outcome.Question{Key: c.Ref.Chart.Helm.URL + " " + c.Credential.Fingerprint(), NotBefore: c.Since(s.clock.Now().Add(-freshIndex))}
	return s.known.Ask(ctx, q, func(ctx context.Context) (*index, error) {
		got, err := s.read(ctx, c)
		return got, c.Explain(ctx, err)
	})
}

// read asks for the index.
func (s *Indexes) read(ctx context.Context, c *auth.Client) (*index, error) {
	at, err := below(c.Ref.Chart.Helm.URL, "index.yaml")
	if err != nil {
		return nil, err
	}
	data, err := c.Document(ctx, at, "the repository's index.yaml", c.Limits.IndexBytes)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, failure.NotPublished("there is no index.yaml; helm.url has to be that of a Helm repository")
	}
	opened, err := s.opener.Open(ctx, &opener.Job{Index: &opener.Index{Data: data}})
	if err != nil {
		return nil, err
	}
	got := &index{charts: opened.Charts, bytes: 1}
	for name, versions := range got.charts {
		got.bytes += int64(len(name))
		for _, v := range versions {
			const overhead = 64
			got.bytes += int64(len(v.Version)+len(v.URL)+len(v.Digest)) + overhead
		}
	}
	return got, nil
}

// find returns a version of a chart. A leading "v" doesn't matter if there is none that is
// written just so.
func (i *index) find(chart, version string) (opener.ChartVersion, bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, same := range []func(opener.ChartVersion) bool{
		func(v opener.ChartVersion) bool { return v.Version == version },
		func(v opener.ChartVersion) bool { return strings.TrimPrefix(v.Version, "v") == bare },
	} {
		for _, v := range i.charts[chart] {
			if same(v) {
				return v, true
			}
		}
	}
	return opener.ChartVersion{}, false
}

// below returns an URL below that of the repository.
func below(repository, name string) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSuffix(repository, "/") + "/" + name)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "helm.url is no URL; correct it")
	}
	return at, nil
}
