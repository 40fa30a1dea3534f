// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"regexp"
	"slices"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
)

// unusedFiles are files of a Cluster Stack's release that make no add-ons: what is
// named so beside its metadata.yaml is for the management cluster, or for machines.
var unusedFiles = regexp.MustCompile(`^[0-9a-z]+-[0-9a-z]+-[0-9]+-[0-9]+-(cluster-class|node-images?)-.*[.](tgz|tar[.]gz)$`)

// filesIn are the files of the release that make the bundle, as its list has them.
// Without digests, the list isn't complete.
func filesIn(in *published) []asset {
	files := slices.Clone(in.assets)
	if slices.ContainsFunc(files, func(a asset) bool { return a.name == clusterstack.MetadataFile }) {
		files = slices.DeleteFunc(files, func(a asset) bool { return unusedFiles.MatchString(a.name) })
	}
	return files
}

// partsIn checks the files of the release before any of them is read.
func partsIn(files []asset, limits artifact.Limits) ([]layout.Part, error) {
	if len(files) == 0 {
		return nil, failure.NotPublished("the release has no files; put them there")
	}
	parts := make([]layout.Part, 0, len(files))
	for _, file := range files {
		parts = append(parts, layout.Part{Name: file.name, Digest: file.digest, Size: file.size})
	}
	return layout.Check(parts, limits)
}

// promisedParts is the list of files as the server promises it; false if it doesn't
// say all of the digests.
func promisedParts(parts []layout.Part) (listing []byte, complete bool) {
	if slices.ContainsFunc(parts, func(p layout.Part) bool { return p.Digest == "" }) {
		return nil, false
	}
	return layout.Listing(parts), true
}

func (r Release) resolveWhole(ctx context.Context, c *auth.Client, found *published) (string, artifact.Content, error) {
	files := filesIn(found)
	parts, err := partsIn(files, c.Limits)
	if err != nil {
		return "", artifact.Content{}, err
	}
	if listing, complete := promisedParts(parts); complete {
		return artifact.Content{Manifest: listing}.Digest(), artifact.Content{}, nil
	}
	got, err := r.downloadWhole(ctx, c, files)
	return got.Digest(), got, err
}

func (r Release) fetchWhole(ctx context.Context, c *auth.Client, found *published, digest string) (artifact.Content, error) {
	files := filesIn(found)
	parts, err := partsIn(files, c.Limits)
	if err != nil {
		return artifact.Content{}, err
	}
	if listing, complete := promisedParts(parts); complete {
		if is := (artifact.Content{Manifest: listing}).Digest(); is != digest {
			return artifact.Content{}, r.other("list of files", is, digest)
		}
	}
	got, err := r.downloadWhole(ctx, c, files)
	if err != nil {
		return artifact.Content{}, err
	}
	if is := got.Digest(); is != digest {
		return artifact.Content{}, r.other("list of files", is, digest)
	}
	return got, nil
}

// downloadWhole gets all files, one after the other.
func (r Release) downloadWhole(ctx context.Context, c *auth.Client, files []asset) (artifact.Content, error) {
	parts := make([]layout.Part, 0, len(files))
	got := artifact.Content{Files: make([]artifact.File, 0, len(files))}
	left := c.Limits.TotalBytes
	for _, file := range files {
		data, err := r.read(ctx, c, file, "file "+failure.Quote(file.name), min(c.Limits.ArchiveBytes, left))
		if err != nil {
			return artifact.Content{}, err
		}
		left -= int64(len(data))
		is := layout.PartOf(file.name, data)
		if file.digest != "" && file.digest != is.Digest {
			return artifact.Content{}, damaged(file)
		}
		parts = append(parts, is)
		got.Files = append(got.Files, artifact.File{Name: file.name, Data: data})
	}
	parts, err := layout.Check(parts, c.Limits)
	if err != nil {
		return artifact.Content{}, err
	}
	got.Manifest = layout.Listing(parts)
	artifact.SortFiles(got.Files)
	return got, nil
}
