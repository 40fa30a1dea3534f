// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestHostsThatGetNoCredentials has archives at a host that the source names, or redirects
// to. It gets no credentials, and where it wants some, others for the source don't help.
func TestHostsThatGetNoCredentials(t *testing.T) {
	archive := targz.Chart(t)
	for kind, from := range map[string]struct {
		ref    func(host string) reference.Reference
		answer func(w http.ResponseWriter, r *http.Request, other string)
	}{
		"helm, by its index": {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, func(w http.ResponseWriter, _ *http.Request, other string) {
			_, _ = io.WriteString(w, oneVersion(other+"/demo.tgz"))
		}},
		"helm, by a redirect": {func(host string) reference.Reference { return inRepository("http://"+host, "1.0.0") }, func(w http.ResponseWriter, r *http.Request, other string) {
			if strings.HasSuffix(r.URL.Path, ".tgz") {
				http.Redirect(w, r, other+"/x?signature=sentinel", http.StatusTemporaryRedirect)
				return
			}
			_, _ = io.WriteString(w, oneVersion("demo.tgz"))
		}},
		"github, by a redirect": {func(host string) reference.Reference { return inRelease("http://"+host+"/o/n", "1.0.0") }, func(w http.ResponseWriter, r *http.Request, other string) {
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
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digestOf(archive)}))
		}},
	} {
		for _, code := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden} {
			t.Run(fmt.Sprint(kind, "/", code), func(t *testing.T) {
				var asked, authorized atomic.Int32
				other := serving(t, func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					expectNoSecrets(t, fmt.Sprint(r.Header))
					w.WriteHeader(code)
					_, _ = w.Write(archive)
				})
				server := serving(t, func(w http.ResponseWriter, r *http.Request) {
					if _, password, _ := r.BasicAuth(); password == sentinelPassword {
						authorized.Add(1)
					} else if kind == "oci, by a redirect" { // which shows them to who asks
						w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					from.answer(w, r, other.URL)
				})
				dir := t.TempDir()
				for _, name := range []string{hostOf(server), hostOf(other)} {
					write(t, filepath.Join(dir, credentials.KeyOf(name)+".username"), sentinelUser)
					write(t, filepath.Join(dir, credentials.KeyOf(name)+".password"), sentinelPassword)
					allowPlain(t, dir, name)
				}
				sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
				err := get(t, sources, plainly(from.ref(hostOf(server))))
				switch {
				case code == http.StatusOK:
					expectRefused(t, err, "")
				case kind == "oci, by a redirect": // whose client doesn't tell who it was
					if reason := asError(t, err).Reason; reason != failure.SourceUnavailable && reason != failure.SourceUnauthorized {
						t.Errorf("got %s: %v", reason, err)
					}
				default:
					expectRefused(t, err, failure.SourceUnavailable)
				}
				if asked.Load() == 0 || authorized.Load() == 0 {
					t.Errorf("the other host was asked %d times, and the source itself got credentials %d times", asked.Load(), authorized.Load())
				}
			})
		}
	}
}

// TestOwnCredentialsWithoutTLS has objects that want the instance's own credentials sent
// in clear text, for each kind of source.
func TestOwnCredentialsWithoutTLS(t *testing.T) {
	var shown atomic.Int64
	server := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			shown.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	host := hostOf(server)
	key := credentials.KeyOf(host)
	for name, ref := range map[string]reference.Reference{
		"oci":    inRegistry("oci://"+host+"/demo", "1.0.0"),
		"helm":   inRepository(server.URL, "1.0.0"),
		"http":   atAddress(server.URL+"/demo.tgz", digestOf("x")),
		"github": inRelease(server.URL+"/o/n", "1.0.0"),
	} {
		for own, files := range map[string]map[string]string{
			"keys": {key + ".username": sentinelUser, key + ".password": sentinelPassword, key + ".token": ""},
			"config.json": {"config.json": dockerConfig(t, map[string]string{
				host: sentinelUser + ":" + sentinelPassword, host + "/demo.tgz": sentinelUser + ":" + sentinelPassword,
			})},
		} {
			if name == "http" && own == "keys" { // which are for no path
				continue
			}
			t.Run(name+" by "+own, func(t *testing.T) {
				dir := t.TempDir()
				for file, data := range files {
					write(t, filepath.Join(dir, file), data)
				}
				sources, clock := remoteSources(t, source.Options{CredentialsDir: dir})
				shown.Store(0)
				expectRefused(t, get(t, sources, plainly(ref)), failure.SourceUnauthorized)
				must.Equal(t, 0, shown.Load(), "they were sent in clear text")
				allowPlain(t, dir, host)
				clock.Step(10 * time.Second)
				expectRefused(t, get(t, sources, plainly(ref)), failure.SourceUnauthorized)
				if shown.Load() == 0 {
					t.Error("they weren't sent, though the administrator allows it")
				}
			})
		}
	}
}

// TestArchiveWithoutTLS has a repository with TLS whose index names an archive at a host
// without. What somebody else got that way isn't given to an object that requires TLS.
func TestArchiveWithoutTLS(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	other := serving(t, func(w http.ResponseWriter, r *http.Request) {
		expectNoSecrets(t, fmt.Sprint(r.Header))
		_, _ = w.Write(archive)
	})
	server, _ := startRepository(t, false, false)
	write(t, filepath.Join(server.dir, "index.yaml"), oneVersion(other.URL+"/demo-1.0.0.tgz"))
	key := credentials.KeyOf(hostOf(server.Server))
	kept := t.TempDir()
	options := source.Options{CredentialsDir: trusting(t, server.ca, key+".username", sentinelUser, key+".password", sentinelPassword), Store: storeAt(kept)}
	strict := inRepository(server.URL, "1.0.0")
	lax := plainly(strict)
	lax.Namespace = "team-b"
	sources, _ := remoteSources(t, options)
	expectRefused(t, get(t, sources, strict), failure.ArtifactRefused)
	got := expectFetched(t, sources, lax)
	restarted, _ := remoteSources(t, options)
	for when, sources := range map[string]*source.Sources{"in memory": sources, "on disk": restarted} {
		t.Run(when, func(t *testing.T) {
			expectRefused(t, get(t, sources, strict), failure.ArtifactRefused)
			_, err := sources.Fetch(t.Context(), strict, got.Digest) // as of a release's record
			expectRefused(t, err, failure.ArtifactRefused)
		})
	}
}
