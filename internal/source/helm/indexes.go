// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
)

// indexCache is how large the indexes are in sum of which the versions are kept in memory:
// these take about a quarter.
const indexCache = 64 << 20 // bytes

// Indexes are what was read of Helm repositories. One is read for all charts of a repository.
type Indexes struct {
	opener opener.Opener
	known  *outcome.Memory[*index] // by URL and credential
}

// index has the versions of a repository's charts, by the charts' names.
type index struct {
	charts map[string][]opener.ChartVersion
	is     http.Header // validators of the answer
	bytes  int64       // of the index.yaml, which has more than that
}

// NewIndexes has indexes read by the opener.
func NewIndexes(o opener.Opener, clock clock.Clock) *Indexes {
	return &Indexes{
		opener: o,
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
	q := outcome.Question{Key: c.Ref.Chart.Helm.URL + " " + c.Credential.Fingerprint(), NotBefore: c.Fresh()}
	return s.known.Ask(ctx, q, func(ctx context.Context) (*index, error) {
		got, err := s.read(ctx, c, q.Key)
		return got, c.Explain(ctx, err)
	})
}

// read asks for the index.
func (s *Indexes) read(ctx context.Context, c *auth.Client, key string) (*index, error) {
	at, err := url.Parse(strings.TrimSuffix(c.Ref.Chart.Helm.URL, "/") + "/index.yaml")
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "helm.url is no URL; correct it")
	}
	before, known := s.known.Peek(key)
	if !known {
		before = &index{}
	}
	answer, err := c.Document(ctx, at, before.is, "the repository's index.yaml")
	switch {
	case err != nil:
		return nil, err
	case answer.Same:
		return before, nil
	case answer.Data == nil:
		return nil, failure.NotPublished("there is no index.yaml; helm.url has to be that of a Helm repository")
	}
	opened, err := s.opener.Open(ctx, &opener.Job{Index: &opener.Index{Data: answer.Data}})
	if err != nil {
		return nil, err
	}
	return &index{charts: opened.Charts, is: answer.Validators, bytes: int64(len(answer.Data))}, nil
}

// find returns a version of a chart. A leading "v" doesn't matter if there is none that is
// written just so.
func (i *index) find(chart, version string) (found opener.ChartVersion, ok bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, v := range i.charts[chart] {
		switch {
		case v.Version == version:
			return v, true
		case !ok && strings.TrimPrefix(v.Version, "v") == bare:
			found, ok = v, true
		}
	}
	return found, ok
}
