// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// serving starts a server for the handler.
func serving(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// hostOf is the host and port of a server.
func hostOf(server *httptest.Server) string { return server.Listener.Addr().String() }

// atHost is the address of a server, with another name for its host.
func atHost(server *httptest.Server, host string) string {
	at, _ := url.Parse(server.URL)
	return net.JoinHostPort(host, at.Port())
}

// silentServer answers nobody until it is told to, and counts who asks.
func silentServer(t testing.TB, then http.HandlerFunc) (server *httptest.Server, asked *atomic.Int32, answer func()) {
	t.Helper()
	asked = &atomic.Int32{}
	let := make(chan struct{})
	server = serving(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-let:
			then(w, r)
		case <-r.Context().Done():
		}
	})
	answer = sync.OnceFunc(func() { close(let) })
	t.Cleanup(answer)
	return server, asked, answer
}

// serveAt starts a server, and makes a directory of credentials for it, also for what is
// below /private at any address.
func serveAt(t testing.TB, handler http.HandlerFunc) (server *httptest.Server, credentialsDir string) {
	t.Helper()
	server = serving(t, handler)
	credentialsDir = t.TempDir()
	write(t, filepath.Join(credentialsDir, credentials.KeyOf(hostOf(server))+".token"), sentinelToken)
	write(t, filepath.Join(credentialsDir, "config.json"), `{"auths": {"`+hostOf(server)+`/private": {"registrytoken": "`+sentinelToken+`"}}}`)
	allowPlain(t, credentialsDir, hostOf(server))
	return server, credentialsDir
}

// servedBy is a chart of a Helm repository that the handler serves, with credentials for it.
func servedBy(t testing.TB, handler http.HandlerFunc) (*source.Sources, *clocktesting.FakeClock, reference.Reference) {
	t.Helper()
	server, dir := serveAt(t, handler)
	sources, clock := remoteSources(t, source.Options{CredentialsDir: dir, Store: storeAt(t.TempDir())})
	return sources, clock, plainly(inRepository(server.URL, "1.0.0"))
}

// registryBy is a chart in a registry that the handler is. The instance's own
// credentials for it have these keys.
func registryBy(t testing.TB, keys map[string]string, handler http.HandlerFunc) (*source.Sources, reference.Reference, *clocktesting.FakeClock) {
	t.Helper()
	host := hostOf(serving(t, handler))
	sources, clock := remoteSources(t, source.Options{CredentialsDir: ownKeys(t, host, keys)})
	return sources, plainly(inRegistry("oci://"+host+"/demo", "1.0.0")), clock
}

// ownKeys is a directory with the instance's own credentials for a host, which may be sent
// there without TLS.
func ownKeys(t testing.TB, host string, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range keys {
		write(t, filepath.Join(dir, credentials.KeyOf(host)+"."+key), value)
	}
	allowPlain(t, dir, host)
	return dir
}

// allowPlain lets credentials in a directory go to a host without TLS.
func allowPlain(t testing.TB, dir, host string) {
	t.Helper()
	write(t, filepath.Join(dir, credentials.KeyOf(host)+"."+credentials.KeyPlainHTTP), "true\n")
}

// ownCredentialsFor writes a directory with the instance's own credentials for a registry.
func ownCredentialsFor(t testing.TB, dir string, r *registry.Registry, user, password string) {
	t.Helper()
	write(t, filepath.Join(dir, "config.json"), dockerConfig(t, map[string]string{r.Host: user + ":" + password}))
	write(t, filepath.Join(dir, "ca.crt"), string(r.CA))
}

// dockerConfig is a config.json with users and their passwords for hosts.
func dockerConfig(t testing.TB, users map[string]string) string {
	t.Helper()
	auths := map[string]map[string]string{}
	for host, user := range users {
		name, password, _ := strings.Cut(user, ":")
		auths[host] = map[string]string{"username": name, "password": password}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	must.Succeed(t, err)
	return string(data)
}

// trusting is a directory of own credentials: authorities to trust, and files by name.
func trusting(t testing.TB, authorities []byte, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), string(authorities))
	for i := 0; i < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

// manifestOf is a manifest with these layers, each as media type and digest.
func manifestOf(layers ...[2]string) string {
	parts := make([]string, 0, len(layers))
	for _, layer := range layers {
		parts = append(parts, fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": 1}`, layer[0], layer[1]))
	}
	return `{"schemaVersion": 2, "mediaType": "` + manifestType + `", "layers": [` + strings.Join(parts, ", ") + `]}`
}

// serve answers as a registry, with the digest that the content has.
func serve(w http.ResponseWriter, kind, data string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", digestOf(data))
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = io.WriteString(w, data) // who asked may be gone
}

// oneVersion is the index of a repository with the chart demo in one version. Its archive
// is at that address.
func oneVersion(address string) string {
	return fmt.Sprintf("apiVersion: v1\nentries:\n  demo:\n  - name: demo\n    version: 1.0.0\n    urls: [%q]\n", address)
}
