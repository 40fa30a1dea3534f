// SPDX-License-Identifier: Apache-2.0

// Package github gets artifacts from releases at GitHub, and at servers with its API.
package github

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// unusedFiles are files of a Cluster Stack's release that make no add-ons: what is
// named so beside its metadata.yaml is for the management cluster, or for machines.
var unusedFiles = regexp.MustCompile(`^[0-9a-z]+-[0-9a-z]+-[0-9]+-[0-9]+-(cluster-class|node-images?)-.*[.](tgz|tar[.]gz)$`)

// Release is a release at GitHub: the one of its files that is the archive, or
// all of its files, as a bundle. The API tells the digest of a file; of one that was
// put there long ago, or at an older server, it doesn't, and it has to be read.
type Release struct {
	*addonsv1.GitHubSource
	version  string
	kind     artifact.Kind
	releases *Releases
}

// New returns what the reference means among releases.
func New(r reference.Reference, releases *Releases) Release {
	return Release{r.Chart.GitHub, r.Chart.Version, r.Kind, releases}
}

// tag returns the tag of the release. Only people see the title of a release.
func (r Release) tag() string { return r.TagPrefix + r.version }

// Verify checks the provenance file beside the archive.
func (r Release) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) (string, error) {
	found, err := r.find(ctx, c)
	if err != nil {
		return "", err
	}
	archive, err := r.archiveIn(found)
	if err != nil {
		return "", err
	}
	name := archive.name + policy.ProvenanceSuffix
	at := slices.IndexFunc(found, func(a asset) bool { return a.name == name })
	if at < 0 {
		return "", want.Unsigned("the release has no file "+failure.Quote(name), "package it with `helm package --sign`, and publish its .prov beside it")
	}
	file, err := r.read(ctx, c, found[at], "the provenance file", policy.MaxProvenance)
	if err != nil {
		return "", err
	}
	return "", want.CheckProvenance(file, digest, c.Ref)
}

// Offer returns the archive among the release's files, or all files that make the bundle.
func (r Release) Offer(ctx context.Context, c *auth.Client) (artifact.Offer, error) {
	found, err := r.find(ctx, c)
	if err != nil {
		return artifact.Offer{}, err
	}
	offer := artifact.Offer{Field: "github.digest", Named: r.Digest != ""}
	if r.Asset != "" || r.kind != artifact.KindBundle {
		file, err := r.archiveIn(found)
		offer.What, offer.Digest = "file "+failure.Quote(file.name), file.digest
		offer.Get = func(ctx context.Context) (artifact.Content, error) { return r.download(ctx, c, file) }
		return offer, err
	}
	if slices.ContainsFunc(found, func(a asset) bool { return a.name == clusterstack.MetadataFile }) {
		found = slices.DeleteFunc(slices.Clone(found), func(a asset) bool { return unusedFiles.MatchString(a.name) })
	}
	if len(found) == 0 {
		return offer, failure.NotPublished("the release has no files; put them there")
	}
	parts := make([]layout.Part, 0, len(found))
	complete := true
	for _, file := range found {
		parts = append(parts, layout.Part{Name: file.name, Digest: file.digest, Size: file.size})
		complete = complete && file.digest != ""
	}
	if parts, err = layout.Check(parts, c.Limits); err != nil {
		return offer, err
	}
	if complete {
		offer.Digest = artifact.Content{Manifest: layout.Listing(parts)}.Digest()
	}
	offer.What = "the list of files"
	offer.Get = func(ctx context.Context) (artifact.Content, error) { return r.downloadAll(ctx, c, found) }
	return offer, nil
}

// archiveIn picks the archive among the release's files.
func (r Release) archiveIn(all []asset) (asset, error) {
	pattern := reference.AssetPattern(r.GitHubSource)
	fits := slices.DeleteFunc(slices.Clone(all), func(a asset) bool {
		return !reference.FitsAsset(pattern, a.name) || strings.HasSuffix(a.name, policy.ProvenanceSuffix)
	})
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return asset{}, failure.New(failure.ArtifactInvalid, "%d files of the release are called %s; set github.asset so that it fits one of them", len(fits), failure.Quote(pattern))
	}
	return asset{}, failure.NotPublished("none of the %d files of the release is called %s; put the %s there, or correct github.asset", len(all), failure.Quote(pattern), r.kind.Packing())
}

// download gets the archive.
func (r Release) download(ctx context.Context, c *auth.Client, file asset) (artifact.Content, error) {
	data, err := r.read(ctx, c, file, "file "+failure.Quote(file.name), c.Limits.ArchiveBytes)
	if unfit := r.kind.Unfit(data); err == nil && unfit != "" {
		err = failure.New(failure.ArtifactInvalid, "the release's file %s is no %s: %s; put one there, or correct github.asset", failure.Quote(file.name), r.kind.Packing(), unfit)
	}
	return artifact.Content{Archive: data}, err
}

// downloadAll gets all files, one after the other.
func (r Release) downloadAll(ctx context.Context, c *auth.Client, files []asset) (artifact.Content, error) {
	parts := make([]layout.Part, 0, len(files))
	got := artifact.Content{Files: make([]artifact.File, 0, len(files))}
	left := c.Limits.TotalBytes
	for _, file := range files {
		data, err := r.read(ctx, c, file, "file "+failure.Quote(file.name), min(c.Limits.ArchiveBytes, left))
		if err != nil {
			return artifact.Content{}, err
		}
		left -= int64(len(data))
		parts = append(parts, layout.PartOf(file.name, data))
		got.Files = append(got.Files, artifact.File{Name: file.name, Data: data})
	}
	parts, err := layout.Check(parts, c.Limits)
	got.Manifest = layout.Listing(parts)
	artifact.SortFiles(got.Files)
	return got, err
}

// read gets a file of the release. The request is redirected to another host, which
// gets to see no credentials.
func (r Release) read(ctx context.Context, c *auth.Client, file asset, what string, most int64) ([]byte, error) {
	if file.size > most {
		return nil, failure.TooLarge(what, most)
	}
	at := r.repository(c).JoinPath("releases", "assets", strconv.FormatInt(file.id, 10))
	data, err := c.File(ctx, at, "application/octet-stream", what, most)
	if err == nil && data == nil {
		r.releases.files.Forget(c, r.at(c)) // it may be another by now
		err = failure.NotPublished("the release lists file %s, but there is none; put it there again", failure.Quote(file.name))
	}
	return data, err
}
