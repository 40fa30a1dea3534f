// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestHostsThatGetNoCredentials has archives at a host that wants to know who asks, but
// isn't told: other credentials for the source don't help.
func TestHostsThatGetNoCredentials(t *testing.T) {
	digest := artifact.Content{Archive: targz.Chart(t)}.Digest()
	for kind, source := range map[string]struct {
		ref    func(host string) reference.Reference
		answer func(w http.ResponseWriter, r *http.Request, other string)
	}{
		"helm, by its index": {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, func(w http.ResponseWriter, _ *http.Request, other string) {
			fmt.Fprintf(w, "entries:\n  demo:\n  - version: 1.0.0\n    urls: [%s/demo.tgz]\n", other)
		}},
		"github, by a redirect": {func(host string) reference.Reference {
			return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Version: "1.0.0", GitHub: &addonsv1.GitHubSource{URL: "http://" + host + "/o/n"}}}
		}, func(w http.ResponseWriter, r *http.Request, other string) {
			if strings.Contains(r.URL.Path, "/assets/") {
				http.Redirect(w, r, other+"/x?signature=sentinel", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, `{"tag_name": "1.0.0", "assets": [{"id": 1, "name": "demo.tgz", "size": 10, "state": "uploaded"}]}`)
		}},
		"oci, by a redirect": {func(host string) reference.Reference { return inRegistry("oci://"+host+"/demo", "1.0.0") }, func(w http.ResponseWriter, r *http.Request, other string) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, other+"/x?signature=sentinel", http.StatusFound)
				return
			}
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
		}},
	} {
		for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			t.Run(fmt.Sprint(kind, "/", code), func(t *testing.T) {
				other := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "" {
						t.Error("it is shown credentials")
					}
					w.WriteHeader(code)
				}))
				server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { source.answer(w, r, other.URL) }))
				dir, host, there := t.TempDir(), strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(other.URL, "http://")
				for _, name := range []string{host, there} {
					write(t, filepath.Join(dir, credentials.KeyOf(name)+".username"), sentinelUser)
					write(t, filepath.Join(dir, credentials.KeyOf(name)+".password"), sentinelPassword)
					write(t, filepath.Join(dir, credentials.KeyOf(name)+".plain-http"), "true")
				}
				ref := source.ref(host)
				plainly(&ref)
				sources, _ := remoteSources(t, Options{CredentialsDir: dir})
				err := get(t, sources, ref)
				expectRefused(t, err, failure.SourceUnavailable, there+" answers ")
				if want := ", and gets no credentials: these are for " + server.URL + " only, which refers to it. Have what is there open to everyone, or in the same place as the source"; !strings.HasSuffix(err.Error(), want) {
					t.Errorf("got %v", err)
				}
				expectNoSecrets(t, err.Error())
			})
		}
	}
}

// TestTokenServiceRefusesCredentials has one at another port, which is shown them.
func TestTokenServiceRefusesCredentials(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := startTokenWorld(t)
			tokens := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			w.realm = tokens.URL + "/token"
			sources, ref := w.sources(t, atHost(w.registry, "127.0.0.1"), map[string]string{"username": sentinelUser, "password": sentinelPassword, "plain-http": "true"})
			_, err := sources.Resolve(t.Context(), ref)
			expectRefused(t, err, failure.SourceUnauthorized, "to the provider instance's own credentials; have them corrected in its Secret chandler-credentials")
			if !strings.Contains(err.Error(), strings.TrimPrefix(tokens.URL, "http://")+" answers ") {
				t.Errorf("it doesn't say who refuses them: %v", err)
			}
		})
	}
}

// TestTokenServiceThatMoved redirects what has the credentials in its body, which the
// registry client doesn't follow.
func TestTokenServiceThatMoved(t *testing.T) {
	w := startTokenWorld(t)
	asked := false
	elsewhere := serving(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	tokens := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/steal?sentinel", http.StatusTemporaryRedirect)
	}))
	w.realm = tokens.URL + "/token"
	host, dir := atHost(w.registry, "127.0.0.1"), t.TempDir()
	write(t, filepath.Join(dir, "config.json"), `{"auths": {"`+host+`": {"identitytoken": "sentinel-identity"}}}`)
	write(t, filepath.Join(dir, credentials.KeyOf(host)+".plain-http"), "true")
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRegistry("oci://"+host+"/demo", "1.0.0")
	plainly(&ref)
	_, err := sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnavailable, host+" refers to a token service at "+strings.TrimPrefix(tokens.URL, "http://")+
		", which redirects to "+strings.TrimPrefix(elsewhere.URL, "http://")+", where no credentials are sent. Have the registry name the token service by the address at which it answers")
	expectNoSecrets(t, err.Error())
	if asked {
		t.Error("the other host was asked")
	}
}

// TestTagsThatGoOnElsewhere has a registry that takes itself for another host, as one
// behind a reverse proxy may.
func TestTagsThatGoOnElsewhere(t *testing.T) {
	asked := false
	elsewhere := serving(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	sources, ref, host := registryBy(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<"+elsewhere.URL+`/v2/demo/tags/list?last=sentinel>; rel="next"`)
		_, _ = io.WriteString(w, `{"name": "demo", "tags": ["1.0.0"]}`)
	})
	ref.Chart.Version = "1.x"
	_, err := newest(t, sources, ref, sources.clock.Now())
	expectRefused(t, err, failure.SourceUnavailable, host+" says that its list goes on at "+elsewhere.URL+", which isn't asked. Have the registry name its own address")
	expectNoSecrets(t, err.Error())
	if asked {
		t.Error("the other host was asked")
	}
}

func TestPortThatThereIsNot(t *testing.T) {
	sources, _ := remoteSources(t, Options{})
	_, err := sources.Resolve(t.Context(), inRepository("https://charts.example.org:99999", "1.0.0"))
	expectRefused(t, err, failure.ArtifactRefused, "charts.example.org:99999 is no address that can be asked: correct its host, or its port, which is 65535 at most")
}

func TestAPanicIsAnError(t *testing.T) {
	err := flight.Guarded(func() error { panic("sentinel") })
	expectRefused(t, err, failure.ArtifactInvalid, "it can't be read: a parser failed on it")
	expectNoSecrets(t, err.Error())
}
