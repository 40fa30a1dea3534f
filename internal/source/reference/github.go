// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"net/url"
	"path"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/egress"
)

// GitHub's own host, and the domain of its tenants that have hosts of their own.
const (
	githubHost    = "github.com"
	githubTenants = ".ghe.com"
)

func githubKind(c addonsv1.ChartSource) remote {
	at := c.GitHub
	if at == nil {
		return remote{}
	}
	return remote{
		Traits: Traits{Releases: true, Provenance: true},
		name:   "github", url: at.URL, by: at.APIURL, secret: at.SecretRef, plainHTTP: at.PlainHTTP, digest: &at.Digest,
		tagPrefix: at.TagPrefix, archive: AssetPattern(at),
		followed: Followed{Of: strings.Join([]string{at.URL, at.APIURL, at.TagPrefix, at.Asset}, " ")},
		base:     func() *url.URL { return apiOf(at) },
		path:     func() string { return RepositoryOf(at) },
		host:     func() string { return repositoryHost(at) },
		address: func(version string) string {
			address := at.URL
			if version != "" {
				address += " release " + at.TagPrefix + version
			}
			if at.Asset != "" {
				address += " file " + at.Asset
			}
			return address
		},
	}
}

// RepositoryOf returns the repository, as in "owner/name".
func RepositoryOf(from *addonsv1.GitHubSource) string {
	return strings.Trim(parsed(from.URL).Path, "/")
}

// apiOf returns where the API is that tells of the repository, without a slash at the end.
func apiOf(from *addonsv1.GitHubSource) *url.URL {
	if from.APIURL != "" {
		return parsed(strings.TrimRight(from.APIURL, "/"))
	}
	at := parsed(from.URL)
	api := &url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/api/v3"}
	if host := githubsOwn(at); host != "" {
		api.Host, api.Path = "api."+host, ""
	}
	return api
}

// repositoryHost returns the host that people know the repository by. The API has another host, which gets its
// credentials as well. It does so only if it is the host's own: another apiURL mustn't get the credentials for url.
func repositoryHost(from *addonsv1.GitHubSource) string {
	if api := apiOf(from); !egress.SameOrigin(api, apiOf(&addonsv1.GitHubSource{URL: from.URL})) {
		return api.Host
	}
	named := parsed(from.URL)
	return cmp.Or(githubsOwn(named), named.Host)
}

// githubsOwn returns the host, if it is GitHub's own or a tenant's of it, without the port that
// it has anyway.
func githubsOwn(at *url.URL) string {
	host := strings.ToLower(at.Host)
	if at.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	if host == githubHost || strings.HasSuffix(host, githubTenants) {
		return host
	}
	return ""
}

// AssetPattern returns the pattern of the name that the archive has among a release's files.
func AssetPattern(from *addonsv1.GitHubSource) string { return cmp.Or(from.Asset, "*.tgz") }

// FitsAsset reports whether a name is as the pattern says, in which "*" stands for any characters.
func FitsAsset(pattern, name string) bool {
	ok, err := path.Match(pattern, name) // of what it knows beside "*", the API lets nothing pass
	return err == nil && ok
}
