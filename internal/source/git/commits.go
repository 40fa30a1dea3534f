// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/commit"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// commitBytes holds the commits of some repositories, or of two very large ones.
const commitBytes = 64 << 20 // bytes

// Commits are commits that were fetched. All that is in a commit shares one fetch, and is opened once.
//
// Key: the repository, the commit, and the credentials.
// Bound: commitBytes bytes, and the budget.
// Lost with it: a commit is fetched again, unless the content at its path is on disk.
type Commits struct {
	opener opener.Opener
	limits artifact.Limits
	known  *answers.Memory[tree]
}

// NewCommits returns commits that the opener reads.
func NewCommits(o opener.Opener, limits artifact.Limits, clock clock.Clock, memory *budget.Budget) *Commits {
	return &Commits{opener: o, limits: limits, known: answers.New(clock, memory, commitBytes, tree.bytes)}
}

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

// Content is what is at a path of a commit.
type Content struct {
	Repository
	commits *Commits
	// ask names a question as it is asked for the reference. Pick returns what is at a path of files.
	ask  func(ctx context.Context, what string) answers.Question
	pick func(ctx context.Context, files []artifact.File, path string) (artifact.Content, error)
}

// In returns what the reference means in a commit.
func (c *Commits) In(
	r reference.Reference, ask func(context.Context, string) answers.Question, pick func(context.Context, []artifact.File, string) (artifact.Content, error),
) Content {
	return Content{Repository{r.Chart.Git}, c, ask, pick}
}

// Resolve returns the digest of the content, which had to be read.
func (i Content) Resolve(ctx context.Context, c *auth.Client) (string, artifact.Content, error) {
	got, err := i.read(ctx, c)
	return got.Digest(), got, err
}

// Fetch returns the content, which has to have the digest.
func (i Content) Fetch(ctx context.Context, c *auth.Client, digest string) (artifact.Content, error) {
	got, err := i.read(ctx, c)
	if err == nil && got.Digest() != digest {
		return artifact.Content{}, failure.New(failure.DigestMismatch, "what is at this path of the commit is %s, not %s; correct git.digest, or take it away", got.Digest(), digest)
	}
	return got, err
}

// read returns the content. An entry at the path, above or below it, that can't be used refuses it.
func (i Content) read(ctx context.Context, c *auth.Client) (artifact.Content, error) {
	if i.Commit == "" {
		return artifact.Content{}, failure.New(failure.ArtifactPending, "which commit is meant isn't found yet")
	}
	is, err := i.commits.known.Ask(ctx, i.ask(ctx, "commit "+i.Commit+" of "+c.Ref.Source()), func(ctx context.Context) (tree, error) {
		pack, err := i.Pack(ctx, c)
		if err != nil {
			return tree{}, c.Explain(ctx, err)
		}
		opened, err := i.commits.opener.Open(ctx, &opener.Job{Commit: &opener.Commit{Pack: pack, Commit: i.Commit, Limits: i.commits.limits}})
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
	return i.pick(ctx, is.files, path)
}

// within reports whether a name is a path, or below it.
func within(name, path string) bool { return name == path || strings.HasPrefix(name, path+"/") }
