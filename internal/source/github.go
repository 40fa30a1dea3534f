// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"path"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// defaultAsset is the chart among a release's files, if the object doesn't say.
	defaultAsset = "*.tgz"
	// provenanceSuffix ends the names of files that are beside an archive, and are none.
	provenanceSuffix = ".prov"
	// maxNamed is how many files a message names.
	maxNamed = 8
)

// githubRelease is a release at GitHub: the one of its files that is the archive, or
// all of its files, as a bundle. The API tells the digest of a file; of one that was
// put there long ago, or at an older server, it doesn't, and it has to be read.
type githubRelease struct {
	*addonsv1.GitHubSource
	version string
	kind    artifact.Kind
	stock   *stock
}

// whole tells whether all files of the release are meant.
func (r githubRelease) whole() bool { return r.Asset == "" && r.kind == artifact.KindBundle }

// tag of the release. What a release is called besides, people see only.
func (r githubRelease) tag() string { return r.TagPrefix + r.version }

// pattern of the archive's name.
func (r githubRelease) pattern() string {
	if r.Asset == "" {
		return defaultAsset
	}
	return r.Asset
}

func (r githubRelease) resolve(ctx context.Context, as *guest) (string, error) {
	found, err := r.find(ctx, as)
	if err != nil {
		return "", err
	}
	if r.whole() {
		return r.resolveWhole(ctx, as, found)
	}
	file, err := r.archiveIn(found)
	if err != nil {
		return "", err
	}
	if file.digest != "" {
		return file.digest, nil
	}
	got, err := r.download(ctx, as, file)
	if err != nil {
		return "", err
	}
	return r.stock.setAside(r.stocked(as), got), nil
}

func (r githubRelease) fetch(ctx context.Context, as *guest, digest string) (artifact.Content, error) {
	if got, found := r.stock.takeUp(r.stocked(as), digest); found {
		return got, nil
	}
	found, err := r.find(ctx, as)
	if err != nil {
		return artifact.Content{}, err
	}
	if r.whole() {
		return r.fetchWhole(ctx, as, found, digest)
	}
	file, err := r.archiveIn(found)
	if err != nil {
		return artifact.Content{}, err
	}
	if file.digest != "" && file.digest != digest {
		return artifact.Content{}, r.other("file "+failure.Quote(file.name), file.digest, digest)
	}
	got, err := r.download(ctx, as, file)
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

// stocked is the name of what was read to know its digest, for who asks, whether it was
// the digest that was asked for or not.
func (r githubRelease) stocked(as *guest) string {
	return r.release().at(as) + " file " + r.Asset + as.ref.Kind.Suffix()
}

// other is the error of a release that has something else now.
func (r githubRelease) other(what, is, wanted string) *failure.Error {
	if r.Digest != "" {
		return failure.New(failure.DigestMismatch, "the release's %s is %s, not github.digest; correct one of github.digest and version. "+ifFollowed, what, is)
	}
	return gone(wanted, "set github.digest to that of the content that is to be installed, or publish another release")
}

// damaged is the error of a file that isn't what the server itself says it is.
func damaged(file asset) *failure.Error {
	return failure.New(failure.DigestMismatch, "the release's file %s isn't the one that the server names by its digest: it is damaged, or was tampered with; put it there again", failure.Quote(file.name))
}

// archiveIn picks the archive among the release's files.
func (r githubRelease) archiveIn(in published) (asset, error) {
	fits := slices.DeleteFunc(slices.Clone(in.assets), func(a asset) bool {
		return !matches(r.pattern(), a.name) || strings.HasSuffix(a.name, provenanceSuffix)
	})
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return asset{}, failure.New(failure.ArtifactInvalid, "%d files of the release are called %s: %s; set github.asset so that it fits one of them", len(fits), failure.Quote(r.pattern()), mention(fits))
	case len(in.assets) == 0:
		return asset{}, notPublished("the release has no files; put the %s there", r.kind.Packing())
	}
	return asset{}, notPublished("the release has no file called %s, but %s; put the %s there, or correct github.asset", failure.Quote(r.pattern()), mention(in.assets), r.kind.Packing())
}

// matches tells whether a name is as the pattern says, in which "*" stands for any characters.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name) // of what it knows beside "*", the API lets nothing pass
	return err == nil && ok
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
func (r githubRelease) download(ctx context.Context, as *guest, file asset) (artifact.Content, error) {
	sent, err := r.read(ctx, as, file, "file "+failure.Quote(file.name), as.limits.ArchiveBytes)
	if err != nil {
		return artifact.Content{}, err
	}
	if unfit := r.kind.Unfit(sent.data); unfit != "" {
		return artifact.Content{}, sent.orPage(file.digest, failure.New(failure.ArtifactInvalid, "the release's file %s is no %s: %s; put one there, or correct github.asset", failure.Quote(file.name), r.kind.Packing(), unfit))
	}
	return artifact.Content{Archive: sent.data, From: r.siteOf(as, file).title()}, nil
}

// siteOf is where a file is. Another one gets another number.
func (r githubRelease) siteOf(as *guest, file asset) site {
	return site{url: r.fileURL(as, file).String(), bytes: file.size}
}

// probe looks the archive up. Who is shown a file in a release may have it.
func (r githubRelease) probe(ctx context.Context, as *guest, digest string, among func(site) bool) (bool, error) {
	found, err := r.find(ctx, as)
	if err != nil {
		return false, err
	}
	if r.whole() {
		return r.probeWhole(as, found, digest, among), nil
	}
	file, err := r.archiveIn(found)
	return err == nil && (file.digest == "" || file.digest == digest) && among(r.siteOf(as, file)), err
}
