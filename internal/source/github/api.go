// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v89/github"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// rememberedReleases is how many releases are.
	rememberedReleases = 256
	// maxReleasePages bounds a list of releases. GitHub's has 10,000 at most.
	maxReleasePages = 100
	// releasesPerPage is the most that the API gives at once.
	releasesPerPage = 100
)

// Releases are the files of releases, by API, repository, tag and credential.
type Releases = outcome.Memory[[]asset]

// NewReleases returns the releases of no repository yet.
func NewReleases(clock clock.Clock) *Releases {
	return outcome.New(clock, rememberedReleases, lru.One[[]asset])
}

// asset is a file of a release.
type asset struct {
	id     int64
	name   string
	size   int64  // bytes
	digest string // as the server says it; "" if it doesn't
}

// find returns the files of the release as it was a moment ago, or since c.NotBefore.
func (r Release) find(ctx context.Context, c *auth.Client) ([]asset, error) {
	q := outcome.Question{Key: r.key(c), NotBefore: c.Fresh()}
	return r.releases.Ask(ctx, q, func(ctx context.Context) ([]asset, error) {
		missing := failure.NotPublished("the server has no release with tag %s in repository %s, or doesn't show it to these credentials; publish it, "+
			"correct github.url, github.tagPrefix or version, or name a Secret in github.secretRef whose token may read the repository", failure.Quote(r.tag()), reference.RepositoryOf(r.GitHubSource))
		var read github.RepositoryRelease
		if _, err := get(ctx, c, "/releases/tags/"+url.PathEscape(r.tag()), missing, &read); err != nil {
			return nil, c.Explain(ctx, err)
		}
		if read.TagName != r.tag() || read.Draft {
			return nil, missing
		}
		var found []asset
		for _, file := range read.Assets {
			if file.GetName() == "" || file.GetState() != "" && file.GetState() != "uploaded" { // it is still on its way
				continue
			}
			is := asset{id: file.GetID(), name: file.GetName(), size: int64(file.GetSize()), digest: strings.ToLower(file.GetDigest())}
			if is.id <= 0 || is.size < 0 {
				return nil, notGitHub()
			}
			if !artifact.IsDigest(is.digest) {
				is.digest = ""
			}
			found = append(found, is)
		}
		return found, nil
	})
}

// key of the release, for whom these credentials are.
func (r Release) key(c *auth.Client) string {
	return strings.Join([]string{c.Ref.Base().String(), reference.RepositoryOf(r.GitHubSource), r.tag(), c.Credential.Fingerprint()}, " ")
}

// get asks the API for a path below the repository, and returns the number of the next page,
// 0 if there is none. An answer that the server says is still good costs no rate limit.
func get(ctx context.Context, c *auth.Client, path string, missing *failure.Error, into any) (next int, err error) {
	api := c.Ref.Base().String() + "/"
	client, err := github.NewClient(github.WithHTTPClient(c.API), github.WithURLs(&api, &api), github.WithDisableRateLimitCheck())
	if err != nil {
		return 0, failure.New(failure.ArtifactInvalid, "github.apiURL is no URL; correct it")
	}
	request, err := client.NewRequest(ctx, http.MethodGet, "repos/"+reference.RepositoryOf(c.Ref.Chart.GitHub)+path, nil)
	if err != nil {
		return 0, failure.New(failure.ArtifactInvalid, "github.url, github.tagPrefix and version make no address of a release; correct them")
	}
	c.Authorize(request)
	response, err := client.Do(request, into)
	switch fault, answered := errors.AsType[*egress.Fault](err); {
	case err == nil:
		return response.NextPage, nil
	case response == nil || answered && fault != nil:
		return 0, err
	case response.StatusCode == http.StatusNotFound:
		return 0, missing
	case response.StatusCode == http.StatusOK:
		return 0, notGitHub()
	}
	return 0, c.Unexpected(response.Response)
}

// notGitHub is the error of an answer that the API wouldn't give.
func notGitHub() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "what the server sends isn't what GitHub's API does; correct github.url or github.apiURL")
}

// Versions lists the tags of all releases, less what is before the version. How a
// release is marked, as the latest one or a pre-release, doesn't matter: its tag says.
func (r Release) Versions(ctx context.Context, c *auth.Client) ([]string, error) {
	missing := failure.NotPublished("the server has no repository %s, or doesn't show it to these credentials; correct github.url, "+
		"or name a Secret in github.secretRef whose token may read the repository", reference.RepositoryOf(r.GitHubSource))
	found := sets.New[string]() // a release that comes while pages are read moves others to the next
	for page := 1; page != 0; {
		if page > maxReleasePages {
			return nil, failure.TooMany("pages of releases", maxReleasePages)
		}
		var listed []*github.RepositoryRelease
		next, err := get(ctx, c, fmt.Sprintf("/releases?per_page=%d&page=%d", releasesPerPage, page), missing, &listed)
		if err != nil {
			return nil, err
		}
		for _, one := range listed {
			version, ours := strings.CutPrefix(one.GetTagName(), r.TagPrefix)
			if !one.GetDraft() && ours && version != "" && len(version) <= versions.MaxLength { // nobody but its authors may see a draft
				found.Insert(version)
			}
		}
		if next != 0 && next <= page {
			return nil, notGitHub() // it would never end
		}
		page = next
	}
	if found.Len() == 0 {
		return nil, failure.NotPublished("repository %s has no release whose tag starts with %s; publish one, or correct github.url or github.tagPrefix",
			reference.RepositoryOf(r.GitHubSource), failure.Quote(r.TagPrefix))
	}
	return sets.List(found), nil
}
