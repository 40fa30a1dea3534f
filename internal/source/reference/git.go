// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

func gitKind(c addonsv1.ChartSource) remote {
	at := c.Git
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{Commits: true},
		name:   "git", url: at.URL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest,
		followed: Followed{Of: at.URL + " " + at.Path, Version: at.Version, Pin: at.Pin, Line: func() (versions.Line, error) { return lineOf(at) }},
		forAll:   func() { at.Branch, at.Tag, at.Semver, at.Commit, at.Path = "", "", "", "", "" },
		base: func() *url.URL {
			base := parsed(at.URL)
			base.User = nil
			return base
		},
		address: func(string) string {
			address := at.URL
			if named := cmp.Or(at.Version(), at.Branch, at.Tag, at.Semver); named != "" {
				address += " " + named
			}
			if at.Path != "" {
				address += " path " + at.Path
			}
			return address
		},
	}
}

// lineOf returns the line of commits that a repository's branch, tag or range of tags has.
func lineOf(at *addonsv1.GitSource) (versions.Line, error) {
	switch {
	case at.Semver != "":
		tags, err := versions.ParseRange(at.Semver)
		return versions.Within{Line: tags, Before: addonsv1.GitTags, After: addonsv1.GitCommit}, err
	case at.Tag != "":
		return versions.Latest{What: "tag " + at.Tag, Prefix: addonsv1.GitTags + at.Tag + addonsv1.GitCommit, Fixed: true}, nil
	}
	return versions.Latest{What: "branch " + at.Branch, Prefix: addonsv1.GitBranches + at.Branch + addonsv1.GitCommit}, nil
}
