// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/commit"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/git"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// commitBytes holds the commits of some repositories, or of two very large ones.
const commitBytes = 64 << 20 // bytes

// tree is the files of a commit, and what can't be one of them.
type tree struct {
	files []artifact.File
	unfit []commit.Unfit
}

// bytes estimates the memory that it holds.
func (t tree) bytes() int64 {
	const overhead = 256 // of an entry, with its name
	return artifact.Content{Files: t.files}.Bytes() + int64(len(t.files)+len(t.unfit)+1)*overhead
}

// inCommit is content at a path of a commit. It is a [backend], and a [catalogue].
type inCommit struct {
	git.Repository
	sources *Sources
	ref     reference.Reference
}

// Resolve returns the digest of the content, which had to be read.
func (i inCommit) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	got, err := i.read(ctx, c)
	return got.Digest(), got, err
}

// Fetch returns the content, which has to have the digest.
func (i inCommit) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	got, err := i.read(ctx, c)
	if err == nil && got.Digest() != digest {
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what is at this path of the commit is %s, not %s; correct git.digest, or take it away", got.Digest(), digest)
	}
	return got, err
}

// read returns the content. All that is in a commit shares one fetch, and is opened once.
func (i inCommit) read(ctx context.Context, c *auth.Client) (artifact.Content, error) {
	if i.Commit == "" {
		return artifact.Content{}, failure.New(failure.ArtifactPending, "which commit is meant isn't found yet")
	}
	question := i.sources.question(ctx, "commit "+i.Commit+" of "+i.ref.Source(), i.ref)
	is, err := i.sources.commits.Ask(ctx, question, func(ctx context.Context) (tree, error) {
		pack, err := i.Pack(ctx, c)
		if err != nil {
			return tree{}, c.Explain(ctx, err)
		}
		opened, err := i.sources.Opener.Open(ctx, &opener.Job{Commit: &opener.Commit{Pack: pack, Commit: i.Commit, Limits: i.sources.Limits}})
		if err != nil {
			return tree{}, err
		}
		return tree{opened.Files, opened.Unfit}, nil
	})
	if err != nil {
		return artifact.Content{}, err
	}
	path := cmp.Or(strings.TrimSuffix(i.Path, "/"), ".")
	for _, entry := range is.unfit {
		if path == "." || within(entry.Name, path) || within(path, entry.Name) {
			return artifact.Content{}, failure.New(failure.ArtifactRefused, "entry %s: %s", failure.Quote(entry.Name), entry.Why)
		}
	}
	left := i.sources.Limits
	bundle := Bundle{sources: i.sources, ctx: ctx, scope: i.ref.Source(), files: is.files, opened: map[string]*Bundle{}, left: &left}
	return bundle.content(path, i.ref.Kind)
}

// within reports whether a name is a path, or below it.
func within(name, path string) bool { return name == path || strings.HasPrefix(name, path+"/") }
