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
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
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
	known  *answers.Memory[commit.Read]
}

// NewCommits returns commits that the opener reads.
func NewCommits(o opener.Opener, limits artifact.Limits, clock clock.Clock, memory *budget.Budget) *Commits {
	return &Commits{opener: o, limits: limits, known: answers.New(clock, memory, commitBytes, bytesOf)}
}

// bytesOf estimates the memory that a commit holds.
func bytesOf(c commit.Read) int64 {
	const overhead = 256 // of an entry, with its name
	return artifact.Content{Files: c.Files}.Bytes() + int64(len(c.Text)) + int64(len(c.Files)+len(c.Unfit)+1)*overhead
}

// Content is what is at a path of a commit.
type Content struct {
	Repository
	commits *Commits
	opened  Opened
}

// Opened returns files as a bundle. The scope says who may have the same.
type Opened func(ctx context.Context, scope, digest string, files []artifact.File) *unpack.Bundle

// In returns what the reference means in a commit.
func (c *Commits) In(r reference.Reference, opened Opened) Content {
	return Content{Repository{r.Chart.Git}, c, opened}
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

// Verify checks the signature of the commit, which has to have the content.
func (i Content) Verify(ctx context.Context, c *auth.Client, digest string, want policy.Policy) (string, error) {
	if _, err := i.Fetch(ctx, c, digest); err != nil {
		return "", err
	}
	is, err := i.commit(ctx, c)
	if err != nil {
		return "", err
	}
	return "", want.CheckCommit(is.Text, i.Commit)
}

// commit returns the commit, which is fetched unless it is known.
func (i Content) commit(ctx context.Context, c *auth.Client) (commit.Read, error) {
	if i.Commit == "" {
		return commit.Read{}, failure.New(failure.ArtifactPending, "which commit is meant isn't found yet")
	}
	q := answers.Question{Key: i.Commit + " of " + c.Ref.Source() + " as " + c.Credential.Fingerprint()}
	return i.commits.known.Ask(ctx, q, func(ctx context.Context) (commit.Read, error) {
		pack, err := i.Pack(ctx, c)
		if err != nil {
			return commit.Read{}, c.Explain(ctx, err)
		}
		opened, err := i.commits.opener.Open(ctx, &opener.Job{Commit: &opener.Commit{Pack: pack, Commit: i.Commit, Limits: i.commits.limits}})
		if err != nil {
			return commit.Read{}, err
		}
		return opened.Commit, nil
	})
}

// read returns the content. An entry at the path, above or below it, that can't be used refuses it.
func (i Content) read(ctx context.Context, c *auth.Client) (artifact.Content, error) {
	is, err := i.commit(ctx, c)
	if err != nil {
		return artifact.Content{}, err
	}
	path := cmp.Or(strings.TrimSuffix(i.Path, "/"), ".")
	for _, entry := range is.Unfit {
		if path == "." || within(entry.Name, path) || within(path, entry.Name) {
			return artifact.Content{}, failure.New(failure.ArtifactRefused, "entry %s: %s", failure.Quote(entry.Name), entry.Why)
		}
	}
	return i.opened(ctx, c.Ref.Source(), "", is.Files).Content(path, c.Ref.Kind)
}

// within reports whether a name is a path, or below it.
func within(name, path string) bool { return name == path || strings.HasPrefix(name, path+"/") }
