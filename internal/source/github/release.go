// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"slices"
	"strconv"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// maxNamed is how many files a message names.
const maxNamed = 8

// Release is a release at GitHub: the one of its files that is the archive, or
// all of its files, as a bundle. The API tells the digest of a file; of one that was
// put there long ago, or at an older server, it doesn't, and it has to be read.
type Release struct {
	*addonsv1.GitHubSource
	version  string
	kind     artifact.Kind
	releases *Releases
}

// whole tells whether all files of the release are meant.
func (r Release) whole() bool { return r.Asset == "" && r.kind == artifact.KindBundle }

// tag of the release. What a release is called besides, people see only.
func (r Release) tag() string { return r.TagPrefix + r.version }

// New returns what the reference means among releases.
func New(r reference.Reference, releases *Releases) Release {
	return Release{r.Chart.GitHub, r.Chart.Version, r.Kind, releases}
}

// Resolve asks the API for the digest.
func (r Release) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	none := artifact.Content{}
	found, err := r.find(ctx, c)
	if err != nil {
		return "", none, err
	}
	if r.whole() {
		return r.resolveWhole(ctx, c, found)
	}
	file, err := r.archiveIn(found)
	if err != nil {
		return "", none, err
	}
	if file.digest != "" {
		return file.digest, none, nil
	}
	got, err := r.download(ctx, c, file)
	return got.Digest(), got, err
}

// Pin is the digest of the version's archive, or of the list of its files.
func (r Release) Pin(ctx context.Context, c *auth.Client) (string, error) {
	digest, _, err := r.Resolve(ctx, c)
	return digest, err
}

// Fetch downloads the archive, or all files.
func (r Release) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	found, err := r.find(ctx, c)
	if err != nil {
		return artifact.Content{}, err
	}
	if r.whole() {
		return r.fetchWhole(ctx, c, found, digest)
	}
	file, err := r.archiveIn(found)
	if err != nil {
		return artifact.Content{}, err
	}
	if file.digest != "" && file.digest != digest {
		return artifact.Content{}, r.other("file "+failure.Quote(file.name), file.digest, digest)
	}
	got, err := r.download(ctx, c, file)
	switch {
	case err != nil:
		return artifact.Content{}, err
	case got.Digest() == digest:
		return got, nil
	case file.digest != "":
		return artifact.Content{}, damaged(file)
	}
	return artifact.Content{}, r.other("file "+failure.Quote(file.name), got.Digest(), digest)
}

// other is the error of a release that has something else now.
func (r Release) other(what, is, wanted string) *failure.Error {
	if r.Digest != "" {
		return failure.New(failure.DigestMismatch, "the release's %s is %s, not github.digest; correct one of github.digest and version. "+failure.IfFollowed, what, is)
	}
	return failure.Gone(wanted, "set github.digest to that of the content that is to be installed, or publish another release")
}

// damaged is the error of a file that isn't what the server itself says it is.
func damaged(file asset) *failure.Error {
	return failure.New(failure.DigestMismatch, "the release's file %s isn't the one that the server names by its digest: it is damaged, or was tampered with; put it there again", failure.Quote(file.name))
}

// archiveIn picks the archive among the release's files.
func (r Release) archiveIn(in *published) (asset, error) {
	fits := slices.DeleteFunc(slices.Clone(in.assets), func(a asset) bool {
		return !reference.FitsAsset(reference.AssetPattern(r.GitHubSource), a.name) || strings.HasSuffix(a.name, policy.ProvenanceSuffix)
	})
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return asset{}, failure.New(failure.ArtifactInvalid, "%d files of the release are called %s: %s; set github.asset so that it fits one of them", len(fits), failure.Quote(reference.AssetPattern(r.GitHubSource)), mention(fits))
	case len(in.assets) == 0:
		return asset{}, failure.NotPublished("the release has no files; put the %s there", r.kind.Packing())
	}
	return asset{}, failure.NotPublished("the release has no file called %s, but %s; put the %s there, or correct github.asset", failure.Quote(reference.AssetPattern(r.GitHubSource)), mention(in.assets), r.kind.Packing())
}

// mention lists the first files by their names.
func mention(files []asset) string {
	names := make([]string, 0, maxNamed)
	for _, file := range files[:min(len(files), maxNamed)] {
		names = append(names, failure.Quote(file.name))
	}
	slices.Sort(names)
	if len(files) > maxNamed {
		names = append(names, "and others")
	}
	return strings.Join(names, ", ")
}

// download gets the archive.
func (r Release) download(ctx context.Context, c *auth.Client, file asset) (artifact.Content, error) {
	data, err := r.read(ctx, c, file, "file "+failure.Quote(file.name), c.Limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	if unfit := r.kind.Unfit(data); unfit != "" {
		return artifact.Content{}, failure.New(failure.ArtifactInvalid, "the release's file %s is no %s: %s; put one there, or correct github.asset", failure.Quote(file.name), r.kind.Packing(), unfit)
	}
	return artifact.Content{Archive: data}, nil
}

// read gets a file of the release. The request is redirected to another host, which
// gets to see no credentials.
func (r Release) read(ctx context.Context, c *auth.Client, file asset, what string, most int64) ([]byte, error) {
	if file.size > most {
		return nil, failure.TooLarge(what, most)
	}
	at := c.Ref.Base().JoinPath("repos", reference.RepositoryOf(r.GitHubSource), "releases", "assets", strconv.FormatInt(file.id, 10))
	data, err := c.File(ctx, at, "application/octet-stream", what, most)
	if err == nil && data == nil {
		r.releases.known.Forget(r.key(c)) // it may be another by now
		err = failure.NotPublished("the release lists file %s, but there is none; put it there again", failure.Quote(file.name))
	}
	return data, err
}
