// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/jsonsize"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/auth"
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
	// maxGrowth is how many times the text of a large answer its values may take, which is what counts for them. Those of real
	// answers take less than the text.
	maxGrowth = 3
	small     = 64 << 10 // bytes
	// maxFileName is how long the name of a file may be, in bytes: as GitHub, and file systems, have it.
	maxFileName = 255
)

// listedRelease has fields of a release in a list, as the API answers it (GitHub REST API, "List releases").
type listedRelease struct {
	TagName string `json:"tag_name"`
	Draft   bool   `json:"draft"`
}

// answeredRelease has the files of a release, too ("Get a release by tag name").
type answeredRelease struct {
	listedRelease
	Assets []struct {
		ID     int64  `json:"id"`
		Name   string `json:"name"`
		State  string `json:"state"`
		Size   int64  `json:"size"`
		Digest string `json:"digest"`
	} `json:"assets"`
}

// Releases are what servers said of releases, and lists of them.
type Releases struct {
	files *auth.Documents[[]asset]
	pages *auth.Documents[page]
}

// NewReleases returns the releases of no repository yet.
func NewReleases(clock clock.Clock, memory *budget.Budget) *Releases {
	const ofAsset = 512 // bytes, with its name
	return &Releases{
		files: auth.NewDocuments(clock, memory, remembered, func(assets []asset, _ int64) int64 { return int64(len(assets)) * ofAsset }),
		pages: auth.NewDocuments(clock, memory, remembered, func(p page, _ int64) int64 { return answers.Strings(p.tags) }),
	}
}

// page is a part of the list of releases.
type page struct {
	tags []string
	next string // number of the next page; "" if there is none
}

// asset is a file of a release.
type asset struct {
	id     int64
	name   string
	size   int64  // bytes
	digest string // as the server says it; "" if it doesn't
}

// find returns the files of the release.
func (r Release) find(ctx context.Context, c *auth.Client) ([]asset, error) {
	missing := failure.NotPublished("the server has no release with tag %s in repository %s, or doesn't show it to these credentials; publish it, "+
		"correct github.url, github.tagPrefix or version, or name a Secret in github.secretRef whose token may read the repository", failure.Quote(r.tag()), reference.RepositoryOf(r.GitHubSource))
	at := r.at(c)
	return r.releases.files.Get(ctx, c, at, "an answer of "+at.Host, missing, func(_ context.Context, answer auth.Answer) ([]asset, error) {
		var read answeredRelease
		switch err := decode(answer.Data, &read); {
		case err != nil:
			return nil, err
		case read.TagName != r.tag() || read.Draft:
			return nil, missing
		}
		return assetsOf(&read)
	})
}

// at returns where the API tells of the release.
func (r Release) at(c *auth.Client) *url.URL {
	return r.repository(c).JoinPath("releases", "tags", url.PathEscape(r.tag()))
}

// repository returns where the API tells of the repository.
func (r Release) repository(c *auth.Client) *url.URL {
	return c.Ref.Base().JoinPath("repos", reference.RepositoryOf(r.GitHubSource))
}

// assetsOf returns the files of a release that are there in whole.
func assetsOf(read *answeredRelease) (found []asset, err error) {
	for _, file := range read.Assets {
		if file.Name == "" || file.State != "" && file.State != "uploaded" { // it is still on its way
			continue
		}
		is := asset{id: file.ID, name: file.Name, size: file.Size, digest: strings.ToLower(file.Digest)}
		if is.id <= 0 || is.size < 0 || len(is.name) > maxFileName {
			return nil, notGitHub()
		}
		if !artifact.IsDigest(is.digest) {
			is.digest = ""
		}
		found = append(found, is)
	}
	return found, nil
}

// decode reads an answer.
func decode(data []byte, into any) error {
	if jsonsize.Of(data) > max(maxGrowth*len(data), small) {
		return failure.New(failure.ArtifactTooLarge, "an answer takes more than %d times its text, as its values are empty; GitHub's aren't: correct github.url or github.apiURL", maxGrowth)
	}
	if json.Unmarshal(data, into) != nil {
		return notGitHub()
	}
	return nil
}

// notGitHub returns the error of an answer that the API wouldn't give.
func notGitHub() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "what the server sends isn't what GitHub's API does; correct github.url or github.apiURL")
}

// nextPage finds the number of the next page in the header Link.
var nextPage = regexp.MustCompile(`[?&]page=([0-9]+)[^>]*>; *rel="next"`)

// page asks for one page of the list of releases.
func (r Release) page(ctx context.Context, c *auth.Client, number string) (page, error) {
	missing := failure.NotPublished("the server has no repository %s, or doesn't show it to these credentials; correct github.url, "+
		"or name a Secret in github.secretRef whose token may read the repository", reference.RepositoryOf(r.GitHubSource))
	at := r.repository(c).JoinPath("releases")
	at.RawQuery = fmt.Sprintf("per_page=%d&page=%s", releasesPerPage, number)
	return r.releases.pages.Get(ctx, c, at, "an answer of "+at.Host, missing, func(_ context.Context, answer auth.Answer) (got page, _ error) {
		var listed []listedRelease
		if err := decode(answer.Data, &listed); err != nil {
			return got, err
		}
		for _, one := range listed {
			if !one.Draft { // nobody but its authors may see one
				got.tags = append(got.tags, one.TagName)
			}
		}
		if next := nextPage.FindStringSubmatch(answer.Link); next != nil {
			got.next = next[1]
		}
		return got, nil
	})
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
