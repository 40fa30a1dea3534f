// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-github/v89/github"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// maxReleasePages bounds a list of releases. GitHub's has 10,000 at most.
	maxReleasePages = 100
	// releasesPerPage is the most that the API gives at once.
	releasesPerPage = 100
)

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
