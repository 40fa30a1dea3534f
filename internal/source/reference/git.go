// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"net/url"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func gitKind(c addonsv1.ChartSource) remote {
	at := c.Git
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{Commits: true},
		name:   "git", url: at.URL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest,
		pin:    func(version string) { at.Pin(version, "") },
		forAll: func() { at.Branch, at.Tag, at.Semver, at.Commit, at.Path = "", "", "", "", "" },
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
