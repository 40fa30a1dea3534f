// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source/auth"
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

// Resolve looks the digest up in the index.
func (h Chart) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	entry, err := h.find(ctx, c)
	if err != nil {
		return "", artifact.Content{}, err
	}
	if promised := promise(entry); promised != "" {
		return promised, artifact.Content{}, nil
	}
	got, err := h.download(ctx, c, entry)
	return got.Digest(), got, err
}

// Fetch downloads the archive that the index names.
func (h Chart) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	entry, err := h.find(ctx, c)
	if err != nil {
		return artifact.Content{}, err
	}
	const wayOut = "set helm.digest to that of the archive that is to be installed, or publish the chart under another version"
	promised := promise(entry)
	if promised != "" && promised != digest {
		if h.Digest != "" {
			return artifact.Content{}, failure.New(failure.DigestMismatch, "the index says that this version is %s, not helm.digest; correct one of helm.digest and version. "+failure.IfFollowed, promised)
		}
		return artifact.Content{}, failure.Gone(digest, wayOut)
	}
	got, err := h.download(ctx, c, entry)
	switch {
	case err != nil:
		return artifact.Content{}, err
	case got.Digest() == digest:
		return got, nil
	case promised != "":
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the archive isn't the one that the index names by its digest: it is damaged, or was tampered with; have it put there again")
	case h.Digest != "":
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the archive isn't the one of helm.digest: it is %s; correct one of helm.digest and version. "+failure.IfFollowed, got.Digest())
	}
	return artifact.Content{}, failure.Gone(digest, wayOut)
}

// Versions lists those of the index.
func (h Chart) Versions(ctx context.Context, c *auth.Client, notBefore time.Time) ([]string, error) {
	index, err := h.indexes.of(ctx, c, notBefore)
	if err != nil {
		return nil, err
	}
	entries := index.charts[h.Chart]
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

// Pin is the digest of the version's archive.
func (h Chart) Pin(ctx context.Context, c *auth.Client) (string, error) {
	digest, _, err := h.Resolve(ctx, c)
	return digest, err
}

// find looks the version up in the index.
func (h Chart) find(ctx context.Context, c *auth.Client) (opener.ChartVersion, error) {
	index, err := h.indexes.of(ctx, c, h.indexes.clock.Now().Add(-freshIndex))
	if err != nil {
		return opener.ChartVersion{}, err
	}
	entry, found := index.find(h.Chart, h.version)
	switch {
	case found:
		return entry, nil
	case len(index.charts[h.Chart]) == 0:
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

// archiveURL is where the index says that an archive is: an URL, or a path below
// that of the repository.
func (h Chart) archiveURL(written string) (*url.URL, error) {
	base, err := below(h.URL, "")
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(written)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "the index names an archive by what is no URL; have the index mended, or correct version")
	}
	at = base.ResolveReference(at)
	switch {
	case at.Scheme == "oci":
		return nil, failure.New(failure.ArtifactInvalid, "the index says that the chart is in a registry, at %s; use chart.oci", failure.Quote(written))
	case at.User != nil:
		return nil, failure.New(failure.ArtifactRefused, "the index names an archive by an URL with a user in it; have the index mended, and put credentials into helm.secretRef")
	case at.Scheme == "https" || at.Scheme == "http" && ptr.Deref(h.PlainHTTP, false):
		return at, nil
	}
	return nil, failure.New(failure.ArtifactRefused, "the index names an archive by an URL without TLS; https:// is needed, or helm.plainHTTP")
}

// promise is the archive's digest as the index names it, "" if it doesn't.
func promise(entry opener.ChartVersion) string {
	digest := "sha256:" + strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:"))
	if !artifact.IsDigest(digest) {
		return ""
	}
	return digest
}
