// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"os"
	"path/filepath"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
)

// The instance's credentials for a repository's host are for the API that belongs to it.
func TestWhereCredentialsForReleasesGo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, host := range []string{"github.com", "example.ghe.com", "git.example.org_8443"} {
		write(host+".token", "for "+host)
	}
	write("api.elsewhere.org.token", "for api.elsewhere.org")
	write("config.json", `{"auths": {"github.com/paid": {"username": "u", "password": "for github.com/paid"}}}`)
	access := New(Options{CredentialsDir: dir})
	for _, tc := range []struct{ url, api, goesTo, token string }{
		{"https://github.com/o/n", "", "https://api.github.com", "for github.com"},
		{"https://GitHub.com/o/n", "", "https://api.github.com", "for github.com"},
		{"https://github.com:443/o/n", "", "https://api.github.com", "for github.com"},
		{"https://github.com/o/n", "https://api.github.com:443", "https://api.github.com:443", "for github.com"},
		{"https://github.com:444/o/n", "", "https://github.com:444/api/v3", ""},
		{"https://github.com/o/n", "https://api.github.com/", "https://api.github.com", "for github.com"},
		{"https://github.com/o/n", "https://evil.example.org/api", "https://evil.example.org/api", ""},
		{"https://github.com/o/n", "https://api.github.com:444", "https://api.github.com:444", ""},
		{"https://github.com/o/n", "http://api.github.com", "http://api.github.com", ""},
		{"https://github.com/o/n", "https://api.elsewhere.org", "https://api.elsewhere.org", "for api.elsewhere.org"},
		{"https://example.ghe.com/o/n", "", "https://api.example.ghe.com", "for example.ghe.com"},
		{"https://example.ghe.com:443/o/n", "", "https://api.example.ghe.com", "for example.ghe.com"},
		{"https://notghe.com/o/n", "", "https://notghe.com/api/v3", ""},
		{"https://git.example.org:8443/o/n", "", "https://git.example.org:8443/api/v3", "for git.example.org_8443"},
		{"https://git.example.org:8443/o/n", "https://git.example.org:8443/git/api/v3", "https://git.example.org:8443/git/api/v3", "for git.example.org_8443"},
		{"https://git.example.org:8443/o/n", "https://git.example.org/api/v3", "https://git.example.org/api/v3", ""},
		{"http://git.example.org:8443/o/n", "", "http://git.example.org:8443/api/v3", ""},
	} {
		ref := reference.Reference{Chart: addonsv1.ChartSource{GitHub: &addonsv1.GitHubSource{URL: tc.url, APIURL: tc.api}}}
		got, err := access.credential(t.Context(), ref)
		must.Succeed(t, err)
		if ref.Base().String() != tc.goesTo || got.Token != tc.token {
			t.Errorf("%s by %q: %q goes to %s; want %q to %s", tc.url, tc.api, got.Token, ref.Base(), tc.token, tc.goesTo)
		}
	}
}
