// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"regexp"
	"slices"

	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// unusedFiles are files of a Cluster Stack's release that make no add-ons: what is
// named so beside its metadata.yaml is for the management cluster, or for machines.
var unusedFiles = regexp.MustCompile(`^[0-9a-z]+-[0-9a-z]+-[0-9]+-[0-9]+-(cluster-class|node-images?)-.*[.](tgz|tar[.]gz)$`)

// filesIn are the files of the release that make the bundle, as its list has them.
// Without digests, the list isn't complete.
func filesIn(in published) []asset {
	files := slices.Clone(in.assets)
	if slices.ContainsFunc(files, func(a asset) bool { return a.name == clusterstack.MetadataFile }) {
		files = slices.DeleteFunc(files, func(a asset) bool { return unusedFiles.MatchString(a.name) })
	}
	return files
}

// partsIn checks the files of the release before any of them is read.
func partsIn(files []asset, limits artifact.Limits) ([]bundlePart, error) {
	if len(files) == 0 {
		return nil, notPublished("the release has no files; put them there")
	}
	parts := make([]bundlePart, 0, len(files))
	for _, file := range files {
		parts = append(parts, bundlePart{name: file.name, digest: file.digest, size: file.size})
	}
	return checkParts(parts, limits)
}

// promisedParts is the list of files as the server promises it; false if it doesn't
// say all of the digests.
func promisedParts(parts []bundlePart) (listing []byte, complete bool) {
	if slices.ContainsFunc(parts, func(p bundlePart) bool { return p.digest == "" }) {
		return nil, false
	}
	return listingOf(parts), true
}

func (r githubRelease) resolveWhole(ctx context.Context, as *guest, found published) (string, error) {
	files := filesIn(found)
	parts, err := partsIn(files, as.limits)
	if err != nil {
		return "", err
	}
	if listing, complete := promisedParts(parts); complete {
		return artifact.Content{Manifest: listing}.Digest(), nil
	}
	got, err := r.downloadWhole(ctx, as, files, sizeOf(parts))
	if err != nil {
		return "", err
	}
	return r.stock.setAside(r.stocked(as), got), nil
}

func (r githubRelease) fetchWhole(ctx context.Context, as *guest, found published, digest string) (artifact.Content, error) {
	files := filesIn(found)
	parts, err := partsIn(files, as.limits)
	if err != nil {
		return artifact.Content{}, err
	}
	if listing, complete := promisedParts(parts); complete {
		if is := (artifact.Content{Manifest: listing}).Digest(); is != digest {
			return artifact.Content{}, r.other("list of files", is, digest)
		}
	}
	got, err := r.downloadWhole(ctx, as, files, sizeOf(parts))
	if err != nil {
		return artifact.Content{}, err
	}
	if is := got.Digest(); is != digest {
		return artifact.Content{}, r.other("list of files", is, digest)
	}
	return got, nil
}

// downloadWhole gets all files, one after the other: as many bytes, if they are what
// the list says.
func (r githubRelease) downloadWhole(ctx context.Context, as *guest, files []asset, bytes int64) (artifact.Content, error) {
	if err := room.Reserve(ctx, bytes); err != nil {
		return artifact.Content{}, err
	}
	parts := make([]bundlePart, 0, len(files))
	got := artifact.Content{Files: make([]render.File, 0, len(files))}
	left := as.limits.TotalBytes
	for _, file := range files {
		sent, err := r.read(ctx, as, file, "file "+failure.Quote(file.name), min(as.limits.ArchiveBytes, left))
		if err != nil {
			return artifact.Content{}, err
		}
		left -= int64(len(sent.data))
		is := partOf(file.name, sent.data)
		if file.digest != "" && file.digest != is.digest {
			return artifact.Content{}, sent.orPage(file.digest, damaged(file))
		}
		parts = append(parts, is)
		got.Files = append(got.Files, render.File{Name: file.name, Data: sent.data})
	}
	parts, err := checkParts(parts, as.limits)
	if err != nil {
		return artifact.Content{}, err
	}
	got.Manifest = listingOf(parts)
	got.From = r.siteOfWhole(as, got.Manifest).title()
	sortFiles(got.Files)
	return got, nil
}

// siteOfWhole is where the release is.
func (r githubRelease) siteOfWhole(as *guest, listing []byte) site {
	return site{url: as.ref.Base().JoinPath("repos", reference.RepositoryOf(r.GitHubSource), "releases", "tags", r.tag()).String(), bytes: int64(len(listing))}
}

// probeWhole tells whether the release, which was shown to the guest, has these files.
func (r githubRelease) probeWhole(as *guest, found published, digest string, among func(site) bool) bool {
	parts, err := partsIn(filesIn(found), as.limits)
	if err != nil {
		return false
	}
	listing, complete := promisedParts(parts)
	return complete && artifact.Content{Manifest: listing}.Digest() == digest && among(r.siteOfWhole(as, listing))
}
