// SPDX-License-Identifier: Apache-2.0

// Package helm gets charts from classic Helm repositories: those with an index.yaml.
package helm

import (
	"context"
	"net/url"
	"path"
	"strings"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Chart is a chart in a classic Helm repository. The index may name the
// archive's digest; if it doesn't, the archive has to be read to know it.
type Chart struct {
	*addonsv1.HelmSource
	version string
	indexes *Indexes
}

// New returns what the reference means in a repository.
func New(r reference.Reference, indexes *Indexes) Chart {
	return Chart{r.Chart.Helm, r.Chart.Version, indexes}
}

// Verify checks the provenance file beside the archive.
func (h Chart) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) (string, error) {
	entry, err := h.find(ctx, c)
	if err != nil {
		return "", err
	}
	at, err := h.archiveURL(entry.URL)
	if err != nil {
		return "", err
	}
	at.Path += policy.ProvenanceSuffix
	at.RawPath = ""
	file, err := c.File(ctx, at, "", "the provenance file", policy.MaxProvenance)
	if err != nil {
		return "", err
	}
	if file == nil {
		return "", want.Unsigned("there is no "+failure.Quote(path.Base(at.Path))+" beside the archive", "package it with `helm package --sign`")
	}
	return "", want.CheckProvenance(file, digest, c.Ref)
}

// Versions lists those of the index.
func (h Chart) Versions(ctx context.Context, c *auth.Client) ([]string, error) {
	index, err := h.indexes.of(ctx, c)
	if err != nil {
		return nil, err
	}
	entries := index[h.Chart]
	if len(entries) == 0 {
		return nil, h.noChart()
	}
	var found []string
	for _, entry := range entries {
		if len(entry.Version) <= versions.MaxLength && versions.IsExact(entry.Version) {
			found = append(found, entry.Version)
		}
	}
	return found, nil
}

// Offer returns the archive that the index names, and its digest.
func (h Chart) Offer(ctx context.Context, c *auth.Client) (artifact.Offer, error) {
	entry, err := h.find(ctx, c)
	if err != nil {
		return artifact.Offer{}, err
	}
	promised := "sha256:" + strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:"))
	if !artifact.IsDigest(promised) {
		promised = ""
	}
	return artifact.Offer{
		What: "the archive", Digest: promised, Field: "helm.digest", Named: h.Digest != "",
		Get: func(ctx context.Context) (artifact.Content, error) { return h.download(ctx, c, entry) },
	}, nil
}

// find looks the version up in the index.
func (h Chart) find(ctx context.Context, c *auth.Client) (opener.ChartVersion, error) {
	index, err := h.indexes.of(ctx, c)
	if err != nil {
		return opener.ChartVersion{}, err
	}
	entry, found := index.find(h.Chart, h.version)
	switch {
	case found:
		return entry, nil
	case len(index[h.Chart]) == 0:
		return entry, h.noChart()
	}
	return entry, failure.NotPublished("the repository has chart %s, but not in version %s; publish it, or correct version", failure.Quote(h.Chart), failure.Quote(h.version))
}

func (h Chart) noChart() *failure.Error {
	return failure.NotPublished("the repository has no chart %s; publish it, or correct helm.chart", failure.Quote(h.Chart))
}

// download gets the archive of a version.
func (h Chart) download(ctx context.Context, c *auth.Client, entry opener.ChartVersion) (artifact.Content, error) {
	at, err := h.archiveURL(entry.URL)
	if err != nil {
		return artifact.Content{}, err
	}
	data, err := c.File(ctx, at, "", "the archive", c.Limits.ArchiveBytes)
	switch {
	case err != nil:
		return artifact.Content{}, err
	case data == nil:
		return artifact.Content{}, failure.NotPublished("the index names an archive for this version, but there is none; have it put there, or correct version")
	case !artifact.IsCompressed(data):
		return artifact.Content{}, failure.New(failure.ArtifactInvalid, "what the repository sends in place of the archive isn't one: it isn't compressed with gzip; have the chart put there")
	}
	return artifact.Content{Archive: data}, nil
}

// archiveURL returns where the index says that an archive is: an URL, or a path below
// that of the repository.
func (h Chart) archiveURL(written string) (*url.URL, error) {
	base, _ := url.Parse(strings.TrimSuffix(h.URL, "/") + "/") // it is that of the index, which was read
	at, err := base.Parse(written)
	switch {
	case err != nil:
		return nil, failure.New(failure.ArtifactInvalid, "the index names an archive by what is no URL; correct the index or version")
	case at.Scheme == "oci":
		return nil, failure.New(failure.ArtifactInvalid, "the index says that the chart is in a registry, at %s; use chart.oci", failure.Quote(written))
	case at.User == nil && (at.Scheme == "https" || at.Scheme == "http" && ptr.Deref(h.PlainHTTP, false)):
		return at, nil
	}
	return nil, failure.New(failure.ArtifactRefused, "the index names an archive by an URL without TLS, or with a user in it; correct the index: https:// is needed, or helm.plainHTTP, and credentials are in helm.secretRef")
}

// indexCache is how large the indexes are in sum of which the versions are kept in memory:
// these take about a quarter.
const indexCache = 64 << 20 // bytes

// Indexes are the indexes of Helm repositories that were read. A single index is read for all
// charts of a repository.
type Indexes struct {
	opener opener.Opener
	known  *auth.Documents[index]
}

// index has the versions of a repository's charts, by the charts' names.
type index map[string][]opener.ChartVersion

// NewIndexes returns indexes that the opener reads.
func NewIndexes(o opener.Opener, clock clock.Clock, memory *budget.Budget) *Indexes {
	return &Indexes{opener: o, known: auth.NewDocuments(clock, memory, indexCache, func(_ index, bytes int64) int64 { return bytes })}
}

// of returns the index of a repository.
func (s *Indexes) of(ctx context.Context, c *auth.Client) (index, error) {
	at, err := url.Parse(strings.TrimSuffix(c.Ref.Chart.Helm.URL, "/") + "/index.yaml")
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "helm.url is no URL; correct it")
	}
	missing := failure.NotPublished("there is no index.yaml; helm.url has to be that of a Helm repository")
	return s.known.Get(ctx, c, at, "the repository's index.yaml", missing, func(ctx context.Context, answer auth.Answer) (index, error) {
		opened, err := s.opener.Open(ctx, &opener.Job{Index: &opener.Index{Data: answer.Data}})
		if err != nil {
			return nil, err
		}
		return opened.Charts, nil
	})
}

// find returns a version of a chart. A leading "v" doesn't matter if there is none that is
// written just so.
func (i index) find(chart, version string) (found opener.ChartVersion, ok bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, v := range i[chart] {
		switch {
		case v.Version == version:
			return v, true
		case !ok && strings.TrimPrefix(v.Version, "v") == bare:
			found, ok = v, true
		}
	}
	return found, ok
}
