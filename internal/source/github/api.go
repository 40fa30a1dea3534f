// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-github/v89/github"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// remembered is how much of releases is, and of pages of them.
	remembered = 8 << 20 // bytes
	// maxReleasePages bounds a list of releases. GitHub's has 10,000 at most.
	maxReleasePages = 100
	// releasesPerPage is the most that the API gives at once.
	releasesPerPage = 100
)

// Releases are what servers said of releases, by API, repository and credential.
type Releases struct {
	files *outcome.Memory[files] // by tag
	pages *lru.Cache[string, page]
}

// NewReleases returns the releases of no repository yet.
func NewReleases(clock clock.Clock) *Releases {
	return &Releases{files: outcome.New(clock, remembered, files.bytes), pages: lru.New[string](remembered, func(p page) int64 { return lru.Strings(p.tags) })}
}

// files are those of a release.
type files struct {
	assets []asset
	is     http.Header // validators of the answer
}

func (f files) bytes() int64 {
	size := int64(256)
	for _, file := range f.assets {
		size += int64(len(file.name)) + 128
	}
	return size
}

// page is a part of the list of releases.
type page struct {
	tags []string
	next string // number of the next page; "" if there is none
	is   http.Header
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
	found, err := r.releases.files.Ask(ctx, q, func(ctx context.Context) (files, error) {
		before, _ := r.releases.files.Peek(q.Key)
		missing := failure.NotPublished("the server has no release with tag %s in repository %s, or doesn't show it to these credentials; publish it, "+
			"correct github.url, github.tagPrefix or version, or name a Secret in github.secretRef whose token may read the repository", failure.Quote(r.tag()), reference.RepositoryOf(r.GitHubSource))
		var read github.RepositoryRelease
		answer, err := get(ctx, c, "/releases/tags/"+url.PathEscape(r.tag()), before.is, missing, &read)
		switch {
		case err != nil:
			return files{}, c.Explain(ctx, err)
		case answer.Same:
			return before, nil
		case read.TagName != r.tag() || read.Draft:
			return files{}, missing
		}
		assets, err := assetsOf(&read)
		return files{assets, answer.Validators}, err
	})
	return found.assets, err
}

// assetsOf returns the files of a release that are there in whole.
func assetsOf(read *github.RepositoryRelease) (found []asset, err error) {
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
}

// key of the release, for whom these credentials are.
func (r Release) key(c *auth.Client) string {
	return strings.Join([]string{c.Ref.Base().String(), reference.RepositoryOf(r.GitHubSource), r.tag(), c.Credential.Fingerprint()}, " ")
}

// get asks the API for a path below the repository. An answer that the server says is still good
// costs no rate limit.
func get(ctx context.Context, c *auth.Client, path string, before http.Header, missing *failure.Error, into any) (auth.Answer, error) {
	at, err := url.Parse(c.Ref.Base().String() + "/repos/" + reference.RepositoryOf(c.Ref.Chart.GitHub) + path)
	if err != nil {
		return auth.Answer{}, failure.New(failure.ArtifactInvalid, "github.url, github.apiURL, github.tagPrefix and version make no address of a release; correct them")
	}
	answer, err := c.Document(ctx, at, before, "an answer of "+at.Host)
	switch {
	case err != nil || answer.Same:
		return answer, err
	case answer.Data == nil:
		return answer, missing
	case json.Unmarshal(answer.Data, into) != nil:
		return answer, notGitHub()
	}
	return answer, nil
}

// notGitHub is the error of an answer that the API wouldn't give.
func notGitHub() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "what the server sends isn't what GitHub's API does; correct github.url or github.apiURL")
}

// nextPage finds the number of the next page in the header Link.
var nextPage = regexp.MustCompile(`[?&]page=([0-9]+)[^>]*>; *rel="next"`)

// page asks for one page of the list of releases.
func (r Release) page(ctx context.Context, c *auth.Client, number string) (page, error) {
	key := c.Ref.Base().String() + " " + reference.RepositoryOf(r.GitHubSource) + " " + number + " " + c.Credential.Fingerprint()
	before, _ := r.releases.pages.Get(key)
	missing := failure.NotPublished("the server has no repository %s, or doesn't show it to these credentials; correct github.url, "+
		"or name a Secret in github.secretRef whose token may read the repository", reference.RepositoryOf(r.GitHubSource))
	var listed []*github.RepositoryRelease
	answer, err := get(ctx, c, fmt.Sprintf("/releases?per_page=%d&page=%s", releasesPerPage, number), before.is, missing, &listed)
	if err != nil || answer.Same {
		return before, err
	}
	got := page{is: answer.Validators}
	for _, one := range listed {
		if !one.GetDraft() { // nobody but its authors may see one
			got.tags = append(got.tags, one.GetTagName())
		}
	}
	if next := nextPage.FindStringSubmatch(answer.Link); next != nil {
		got.next = next[1]
	}
	r.releases.pages.Put(key, got)
	return got, nil
}

// Versions lists the tags of all releases, less what is before the version. How a
// release is marked, as the latest one or a pre-release, doesn't matter: its tag says.
func (r Release) Versions(ctx context.Context, c *auth.Client) ([]string, error) {
	found := sets.New[string]() // a release that comes while pages are read moves others to the next
	seen := sets.New[string]()
	for number := "1"; number != ""; {
		if seen.Has(number) {
			return nil, notGitHub() // it would never end
		}
		if seen.Insert(number); seen.Len() > maxReleasePages {
			return nil, failure.TooMany("pages of releases", maxReleasePages)
		}
		got, err := r.page(ctx, c, number)
		if err != nil {
			return nil, err
		}
		for _, tag := range got.tags {
			if version, ours := strings.CutPrefix(tag, r.TagPrefix); ours && version != "" && len(version) <= versions.MaxLength {
				found.Insert(version)
			}
		}
		number = got.next
	}
	if found.Len() == 0 {
		return nil, failure.NotPublished("repository %s has no release whose tag starts with %s; publish one, or correct github.url or github.tagPrefix",
			reference.RepositoryOf(r.GitHubSource), failure.Quote(r.TagPrefix))
	}
	return sets.List(found), nil
}
