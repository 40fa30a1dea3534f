// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// TestOwnCredentialsWithoutTLS has objects that want the instance's own credentials sent
// in clear text: for each kind of source, and for what a chart depends on.
func TestOwnCredentialsWithoutTLS(t *testing.T) {
	var shown atomic.Int64
	server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			shown.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	host := strings.TrimPrefix(server.URL, "http://")
	key := credentials.KeyOf(host)
	for name, ref := range map[string]reference.Reference{
		"oci":    inRegistry("oci://"+host+"/demo", "1.0.0"),
		"helm":   inRepository(server.URL, "1.0.0"),
		"http":   atAddress(server.URL+"/demo.tgz", "sha256:"+strings.Repeat("a", 64)),
		"github": {Namespace: "team-a", Chart: addonsv1.ChartSource{GitHub: &addonsv1.GitHubSource{URL: server.URL + "/o/n"}, Version: "1.0.0"}},
	} {
		plainly(&ref)
		for own, files := range map[string]map[string]string{
			"keys": {key + ".username": sentinelUser, key + ".password": sentinelPassword, key + ".token": ""},
			"config.json": {"config.json": dockerConfig(t, map[string]string{
				host: sentinelUser + ":" + sentinelPassword, host + "/demo.tgz": sentinelUser + ":" + sentinelPassword,
			})},
		} {
			if name == "http" && own == "keys" { // which are for no path
				continue
			}
			dir := t.TempDir()
			for file, data := range files {
				write(t, filepath.Join(dir, file), data)
			}
			sources, clock := remoteSources(t, Options{CredentialsDir: dir})
			shown.Store(0)
			err := get(t, sources, ref)
			expectRefused(t, err, failure.SourceUnauthorized, "without TLS they are sent only if "+key+`.plain-http is "true" there`)
			if shown.Load() != 0 {
				t.Errorf("%s, %s: they were sent in clear text", name, own)
			}
			allowPlain(t, dir, host)
			clock.Step(ownCredentials)
			expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized, "to the provider instance's own credentials; have them corrected in its Secret chandler-credentials")
			if shown.Load() == 0 {
				t.Errorf("%s, %s: they weren't sent, though the administrator allows it", name, own)
			}
		}
	}
}

// TestArchiveWithoutTLS has a repository with TLS whose index names an archive at a host
// without.
func TestArchiveWithoutTLS(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	other := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the repository's credentials came along")
		}
		_, _ = w.Write(archive)
	}))
	server, _ := startRepository(t, false, false)
	write(t, filepath.Join(server.dir, "index.yaml"), fmt.Sprintf("apiVersion: v1\nentries:\n  demo:\n  - version: 1.0.0\n    urls: [%s/demo-1.0.0.tgz]\n", other.URL))
	key := credentials.KeyOf(strings.TrimPrefix(server.URL, "https://"))
	dir := instanceTrusting(t, server.ca, key+".username", sentinelUser, key+".password", sentinelPassword)
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRepository(server.URL, "1.0.0")
	expectRefused(t, get(t, sources, ref), failure.ArtifactRefused, "https:// is needed, or helm.plainHTTP")
	plainly(&ref)
	sources, _ = remoteSources(t, Options{CredentialsDir: dir})
	expectFetched(t, sources, ref)
}

// What somebody else got without TLS isn't given to an object that requires it.
func TestResultsWithoutTLSAreNotShared(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	other := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	server, _ := startRepository(t, false, false)
	write(t, filepath.Join(server.dir, "index.yaml"), fmt.Sprintf("apiVersion: v1\nentries:\n  demo:\n  - version: 1.0.0\n    urls: [%s/demo-1.0.0.tgz]\n", other.URL))
	key := credentials.KeyOf(strings.TrimPrefix(server.URL, "https://"))
	dir := instanceTrusting(t, server.ca, key+".username", sentinelUser, key+".password", sentinelPassword)
	lax, strict := inRepository(server.URL, "1.0.0"), inRepository(server.URL, "1.0.0")
	plainly(&lax)
	lax.Namespace = "team-b"
	kept := t.TempDir()
	sources, _ := remoteSources(t, Options{CredentialsDir: dir, Store: storeAt(kept)})
	got := expectFetched(t, sources, lax)
	restarted, _ := remoteSources(t, Options{CredentialsDir: dir, Store: storeAt(kept)})
	for when, sources := range map[string]*Sources{"in memory": sources, "on disk": restarted} {
		t.Run(when, func(t *testing.T) {
			expectRefused(t, get(t, sources, strict), failure.ArtifactRefused, "https:// is needed, or helm.plainHTTP")
			_, err := sources.Fetch(t.Context(), strict, got.Digest) // as of a release's record
			expectRefused(t, err, failure.ArtifactRefused, "https:// is needed, or helm.plainHTTP")
		})
	}
}

// TestTokenServiceWithoutTLS is that of a registry with TLS. Whoever is between could read
// what it is shown, and the object doesn't say that this is all right.
func TestTokenServiceWithoutTLS(t *testing.T) {
	w := startTokenWorld(t)
	tokens := serving(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it is asked, with Authorization %q", r.Header.Get("Authorization"))
	}))
	w.realm = tokens.URL + "/token"
	secure := httptest.NewTLSServer(w.registry.Config.Handler)
	defer secure.Close()
	host := strings.TrimPrefix(secure.URL, "https://")
	key := credentials.KeyOf(host)
	for name, own := range map[string][]string{
		"a password":        {key + ".username", sentinelUser, key + ".password", sentinelPassword},
		"an identity token": {"config.json", `{"auths": {"` + host + `": {"identitytoken": "sentinel-identity"}}}`},
		"nothing":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
			sources, _ := remoteSources(t, Options{CredentialsDir: instanceTrusting(t, authority, own...)})
			err := get(t, sources, inRegistry("oci://"+host+"/demo", "1.0.0"))
			expectError(t, err, failure.SourceUnavailable, "chart.oci: oci://"+host+"/demo:1.0.0: "+host+" refers to a token service at "+strings.TrimPrefix(tokens.URL, "http://")+
				" without TLS, which isn't asked: what it is shown could be read on the way. Have the registry name it by its address with https://")
			expectNoSecrets(t, err.Error())
		})
	}
}

// instanceTrusting writes the instance's own credentials: the authorities, and files by name.
func instanceTrusting(t testing.TB, authorities []byte, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), string(authorities))
	for i := 0; i < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

// dockerConfig is a config.json for these hosts.
func dockerConfig(t testing.TB, users map[string]string) string {
	t.Helper()
	auths := map[string]map[string]string{}
	for host, user := range users {
		name, password, _ := strings.Cut(user, ":")
		auths[host] = map[string]string{"username": name, "password": password}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
