// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"net/url"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/repoindex"
)

// Chart is a chart in a classic Helm repository. The index may name the
// archive's digest; if it doesn't, the archive has to be read to know it.
type Chart struct {
	*addonsv1.HelmSource
	version string
	indexes *Indexes
	aside   *place.Aside
}

// New is the place of a chart in a classic repository.
func New(r reference.Reference, indexes *Indexes, aside *place.Aside) Chart {
	return Chart{r.Chart.Helm, r.Chart.Version, indexes, aside}
}

// Resolve looks the digest up in the index.
func (c Chart) Resolve(ctx context.Context, as *guest.Guest) (string, error) {
	entry, err := c.find(ctx, as)
	if err != nil {
		return "", err
	}
	if promised := promise(entry); promised != "" {
		return promised, nil
	}
	got, err := c.download(ctx, as, entry)
	if err != nil {
		return "", err
	}
	return c.aside.SetAside(as.Ref.Visit(), got), nil
}

// Fetch downloads the archive that the index names.
func (c Chart) Fetch(ctx context.Context, as *guest.Guest, digest string) (artifact.Content, error) {
	if got, found := c.aside.TakeUp(as.Ref.Visit(), digest); found {
		return got, nil
	}
	entry, err := c.find(ctx, as)
	if err != nil {
		return artifact.Content{}, err
	}
	const wayOut = "set helm.digest to that of the archive that is to be installed, or publish the chart under another version"
	promised := promise(entry)
	if promised != "" && promised != digest {
		if c.Digest != "" {
			return artifact.Content{}, failure.New(failure.DigestMismatch, "the index says that this version is %s, not helm.digest; correct one of helm.digest and version. "+place.IfFollowed, promised)
		}
		return artifact.Content{}, failure.Gone(digest, wayOut)
	}
	got, err := c.download(ctx, as, entry)
	switch {
	case err != nil:
		return artifact.Content{}, err
	case got.Digest() == digest:
		return got, nil
	case promised != "":
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the archive isn't the one that the index names by its digest: it is damaged, or was tampered with; have it put there again")
	case c.Digest != "":
		return artifact.Content{}, failure.New(failure.DigestMismatch, "the archive isn't the one of helm.digest: it is %s; correct one of helm.digest and version. "+place.IfFollowed, got.Digest())
	}
	return artifact.Content{}, failure.Gone(digest, wayOut)
}

// find looks the version up in the index.
func (c Chart) find(ctx context.Context, as *guest.Guest) (repoindex.Version, error) {
	index, err := c.indexes.index(ctx, as, c.HelmSource)
	if err != nil {
		return repoindex.Version{}, err
	}
	entry, found := index.Find(c.Chart, c.version)
	switch {
	case found:
		return entry, nil
	case len(index.Versions(c.Chart)) == 0:
		return entry, failure.NotPublished("the repository has no chart %s; publish it, or correct helm.chart", failure.Quote(c.Chart))
	}
	return entry, failure.NotPublished("the repository has chart %s, but not in version %s; publish it, or correct version", failure.Quote(c.Chart), failure.Quote(c.version))
}

// download gets the archive of a version.
func (c Chart) download(ctx context.Context, as *guest.Guest, entry repoindex.Version) (artifact.Content, error) {
	at, err := c.archiveURL(entry.URL)
	if err != nil {
		return artifact.Content{}, err
	}
	sent, err := as.Archive(ctx, at)
	switch {
	case err != nil:
		return artifact.Content{}, err
	case sent == nil:
		return artifact.Content{}, failure.NotPublished("the index names an archive for this version, but there is none; have it put there, or correct version")
	case !artifact.IsCompressed(sent.Data):
		return artifact.Content{}, sent.OrPage(promise(entry), failure.New(failure.ArtifactInvalid, "what the repository sends in place of the archive isn't one: it isn't compressed with gzip; have the chart put there"))
	}
	return artifact.Content{Archive: sent.Data, From: place.Site{URL: at.String(), Bytes: int64(len(sent.Data))}.Title()}, nil
}

// Probe asks how large the archive is.
func (c Chart) Probe(ctx context.Context, as *guest.Guest, _ string, among func(place.Site) bool) (bool, error) {
	entry, err := c.find(ctx, as)
	if err != nil {
		return false, err
	}
	at, err := c.archiveURL(entry.URL)
	if err != nil {
		return false, err
	}
	size, err := as.Size(ctx, at)
	return err == nil && among(place.Site{URL: at.String(), Bytes: size}), err
}

// archiveURL is where the index says that an archive is: an URL, or a path below
// that of the repository.
func (c Chart) archiveURL(written string) (*url.URL, error) {
	base, err := c.below("")
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
	case at.Scheme == "https" || at.Scheme == "http" && ptr.Deref(c.PlainHTTP, false):
		return at, nil
	}
	return nil, failure.New(failure.ArtifactRefused, "the index names an archive by an URL without TLS; https:// is needed, or helm.plainHTTP")
}

// below is an URL below that of the repository.
func (c Chart) below(name string) (*url.URL, error) {
	at, err := url.Parse(strings.TrimSuffix(c.URL, "/") + "/" + name)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "helm.url is no URL; correct it")
	}
	return at, nil
}

// promise is the archive's digest as the index names it, "" if it doesn't.
func promise(entry repoindex.Version) string {
	digest := "sha256:" + strings.ToLower(strings.TrimPrefix(entry.Digest, "sha256:"))
	if !artifact.IsDigest(digest) {
		return ""
	}
	return digest
}
