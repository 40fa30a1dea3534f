// SPDX-License-Identifier: Apache-2.0

// Package git asks Git servers for the names of a repository, and for commits without history. It runs nothing, and opens
// nothing: neither hooks nor filters, submodules or Git LFS. What is in a commit is for package commit.
package git

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Repository is a Git repository.
type Repository struct{ *addonsv1.GitSource }

// Versions lists branches and tags with their commits, as in "heads/main@sha1:<hex>".
func (r Repository) Versions(ctx context.Context, c *auth.Client) ([]string, error) {
	return ask(ctx, c, func(s server, first advertised) ([]string, error) {
		if first.second {
			answer, err := s.Command(listNames)
			if err != nil {
				return nil, err
			}
			if first, err = readAdvertised(answer); err != nil {
				return nil, err
			}
		}
		return versionsOf(first.names), nil
	})
}

// versionsOf leaves out what is neither a branch nor a tag, or too long.
func versionsOf(names []ref) []string {
	var found []string
	for _, is := range names {
		short := strings.TrimPrefix(is.name, "refs/")
		version := short + addonsv1.GitCommit + is.commit
		if (strings.HasPrefix(short, addonsv1.GitBranches) || strings.HasPrefix(short, addonsv1.GitTags)) && len(version) <= versions.MaxLength {
			found = append(found, version)
		}
	}
	return found
}

// Pack returns the commit with its trees and files, as a pack.
func (r Repository) Pack(ctx context.Context, c *auth.Client) ([]byte, error) {
	return ask(ctx, c, func(s server, first advertised) ([]byte, error) {
		answer, err := s.Command(first.wantCommit(r.Commit))
		if err != nil {
			return nil, err
		}
		pack, err := first.readPack(answer, c.Limits.ArchiveBytes)
		if errors.Is(err, errRefused) {
			return nil, failure.NotPublished("the repository has no commit %s, or its server gives only the newest ones of branches and tags; correct the commit", r.Commit)
		}
		return pack, err
	})
}

// ask connects to the repository's server, reads what it says first, and calls what asks.
func ask[T any](ctx context.Context, c *auth.Client, call func(server, advertised) (T, error)) (answer T, err error) {
	to, err := connect(ctx, c)
	if err != nil {
		return answer, explain(ctx, c, err)
	}
	defer to.Close()
	said, err := to.Advertisement()
	if err != nil {
		return answer, err
	}
	first, err := readAdvertised(said)
	if errors.Is(err, io.EOF) { // SSH has the reason elsewhere
		err = errRefused
	}
	if err == nil {
		answer, err = call(to, first)
	}
	return answer, explain(ctx, c, err)
}

func connect(ctx context.Context, c *auth.Client) (server, error) {
	written := strings.TrimSuffix(c.Ref.Chart.Git.URL, "/")
	at, err := url.Parse(written)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "git.url is no URL; correct it")
	}
	if at.Scheme == "ssh" {
		return dial(ctx, c, at)
	}
	return &overHTTP{ctx: ctx, client: c, at: written}, nil
}

// explain says what an answer that broke off means. Other errors are explained already.
func explain(ctx context.Context, c *auth.Client, err error) error {
	host, _ := c.Ref.Host()
	_, told := errors.AsType[*failure.Error](err)
	switch {
	case err == nil, told, egress.Explain(ctx, host, err) != nil:
		return err
	case errors.Is(err, errRefused):
		return noRepository(host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return brokeOff(host)
	}
	return err
}

func noRepository(host string) error {
	return failure.NotPublished("%s has no such repository, or doesn't show it to these credentials; correct git.url, or what they are allowed", host)
}

func brokeOff(host string) error {
	return failure.New(failure.SourceUnavailable, "%s broke off the connection; check the address and the host. It is asked again", host)
}
