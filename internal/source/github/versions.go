// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// maxReleasePages bounds a list of releases. GitHub's has 10,000 at most.
const maxReleasePages = 100

// Versions lists the tags of all releases, less what is before the version. How a
// release is marked, as the latest one or a pre-release, doesn't matter: its tag says.
func (r Release) Versions(ctx context.Context, as *guest.Guest, notBefore time.Time) ([]string, time.Time, error) {
	var found []string
	var asOf time.Time        // of the oldest page
	seen := map[string]bool{} // a release that comes while pages are read moves others to the next
	for page := 1; page != 0; {
		if page > maxReleasePages {
			return nil, asOf, failure.New(failure.ArtifactTooLarge, "its list of releases has more than %d pages; name an exact version", maxReleasePages)
		}
		answer, err := r.releases.since(ctx, as, r.list(page), notBefore)
		if err != nil {
			return nil, asOf, err
		}
		if asOf.IsZero() || answer.read.Before(asOf) {
			asOf = answer.read
		}
		for _, tag := range answer.tags {
			version, ours := strings.CutPrefix(tag, r.TagPrefix)
			if !ours || version == "" || len(version) > versions.MaxLength || seen[version] {
				continue
			}
			if seen[version] = true; len(seen) > place.MaxVersions {
				return nil, asOf, place.TooManyTags(place.MaxVersions)
			}
			found = append(found, version)
		}
		if answer.next != 0 && answer.next <= page {
			return nil, asOf, notGitHub() // it would never end
		}
		page = answer.next
	}
	if len(found) == 0 {
		return nil, asOf, r.nothingListed()
	}
	return found, asOf, nil
}

func (r Release) nothingListed() *failure.Error {
	if r.TagPrefix == "" {
		return failure.NotPublished("repository %s has no release; publish one, or correct github.url", reference.RepositoryOf(r.GitHubSource))
	}
	return failure.NotPublished("repository %s has no release whose tag starts with %s; publish one, or correct github.url or github.tagPrefix",
		reference.RepositoryOf(r.GitHubSource), failure.Quote(r.TagPrefix))
}

// list is the question for a page of the list of releases.
func (r Release) list(page int) question {
	return question{
		path: fmt.Sprintf("/releases?per_page=100&page=%d", page), what: "a page of the list of releases", most: maxReleasePage,
		parse: func(data []byte, into *told) (err error) {
			into.tags, err = parseTags(data)
			return err
		},
		none: failure.NotPublished("the server has no repository %s, or doesn't show it to these credentials; correct github.url, "+
			"or name a Secret in github.secretRef whose token may read the repository", reference.RepositoryOf(r.GitHubSource)),
	}
}

// Pin is the digest of the version's archive, or of the list of its files.
func (r Release) Pin(ctx context.Context, as *guest.Guest) (string, error) {
	return r.Resolve(ctx, as)
}

var _ place.Catalogue = Release{}
