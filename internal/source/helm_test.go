// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestChartFromAHelmRepository(t *testing.T) {
	server, _ := startRepository(t, false, false)
	index := repo.NewIndexFile()
	absolute := server.publish(t, index, "1.0.0", server.URL+"/charts", true)
	relative := server.publish(t, index, "v1.1.0", "", true)
	noDigest := server.publish(t, index, "1.2.0", "", false)
	dir := t.TempDir()
	key := credentials.KeyOf(strings.TrimPrefix(server.URL, "https://"))
	write(t, filepath.Join(dir, key+".username"), sentinelUser)
	write(t, filepath.Join(dir, key+".password"), sentinelPassword+"\n")
	write(t, filepath.Join(dir, key+".ca.crt"), string(server.ca))
	sources, clock := remoteSources(t, source.Options{CredentialsDir: dir, Store: storeAt(t.TempDir())})

	for version, archive := range map[string][]byte{"1.0.0": absolute, "1.1.0": relative, "v1.2.0": noDigest} {
		t.Run(version, func(t *testing.T) {
			fetched := expectFetched(t, sources, inRepository(server.URL+"/charts", version))
			must.Equal(t, digestOf(archive), fetched.Digest, "digest")
			again := expectFetched(t, sources, inRepository(server.URL+"/charts", version))
			if again != fetched {
				t.Error("it was unpacked twice")
			}
		})
	}
	asked := server.asked()
	slices.Sort(asked)
	want := []string{"GET /charts/demo-1.0.0.tgz", "GET /charts/demo-1.2.0.tgz", "GET /charts/demo-v1.1.0.tgz", "GET /charts/index.yaml"}
	must.Equal(t, want, asked, "requests")

	t.Run("a version that comes later", func(t *testing.T) {
		ref := inRepository(server.URL+"/charts", "2.0.0")
		_, err := sources.Resolve(t.Context(), ref)
		expectRefused(t, err, failure.ArtifactNotFound)
		server.publish(t, index, "2.0.0", "", true)
		must.Succeed(t, os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
		clock.Step(2 * retry.NotFound.Longest)
		expectFetched(t, sources, ref)
	})
	t.Run("overwritten", func(t *testing.T) {
		ref := inRepository(server.URL+"/charts", "1.0.0")
		digest := expectResolved(t, sources, ref)
		write(t, filepath.Join(server.dir, "charts", "demo-1.0.0.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/other", Data: "x"})))
		restarted, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		_, err := restarted.Fetch(t.Context(), ref, digest)
		expectRefused(t, err, failure.DigestMismatch)
		pinned := inRepository(server.URL+"/charts", "1.2.0")
		pinned.Chart.Helm.Digest = digest
		_, err = restarted.Fetch(t.Context(), pinned, expectResolved(t, restarted, pinned))
		expectRefused(t, err, failure.DigestMismatch)
	})
	t.Run("without credentials", func(t *testing.T) {
		for _, name := range []string{".username", ".password"} {
			must.Succeed(t, os.Remove(filepath.Join(dir, key+name)))
		}
		restarted, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		_, err := restarted.Resolve(t.Context(), inRepository(server.URL+"/charts", "1.0.0"))
		expectRefused(t, err, failure.SourceUnauthorized)
	})
}

func TestHelmRepositoryWithClientCertificate(t *testing.T) {
	server, authority := startRepository(t, false, true)
	server.publish(t, repo.NewIndexFile(), "1.0.0", "", true)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), string(server.ca))
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	ref := inRepository(server.URL+"/charts", "1.0.0")
	_, err := sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnavailable)
	certificate, key := authority.Issue(t)
	prefix := credentials.KeyOf(strings.TrimPrefix(server.URL, "https://"))
	write(t, filepath.Join(dir, prefix+".tls.crt"), string(certificate))
	_, err = sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnauthorized)
	write(t, filepath.Join(dir, prefix+".tls.key"), string(key))
	expectFetched(t, sources, ref)
}

func TestWhatAnIndexMaySay(t *testing.T) {
	server, _ := startRepository(t, true, false)
	for name, test := range map[string]struct{ index, reason string }{
		"in a registry":     {oneVersion("oci://registry.example.org/demo:1.0.0"), failure.ArtifactInvalid},
		"a file":            {oneVersion("file:///etc/passwd"), failure.ArtifactRefused},
		"with a user":       {oneVersion("http://user:sentinel@" + hostOf(server.Server) + "/demo.tgz"), failure.ArtifactRefused},
		"no URL":            {oneVersion("http://[::"), failure.ArtifactInvalid},
		"a metadata server": {oneVersion("http://169.254.169.254/latest/meta-data?sentinel"), failure.ArtifactRefused},
		"missing":           {oneVersion("demo-1.0.0.tgz"), failure.ArtifactNotFound},
		"a web page":        {oneVersion("page.html"), failure.ArtifactInvalid},
		"another file":      {oneVersion("index.yaml"), failure.ArtifactInvalid},
		"no such chart":     {"entries: {}", failure.ArtifactNotFound},
		"no index":          {"title: sentinel\n", failure.ArtifactInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(server.dir, "charts", "index.yaml"), test.index)
			write(t, filepath.Join(server.dir, "charts", "page.html"), "<!DOCTYPE html>sentinel")
			sources, _ := remoteSources(t, source.Options{})
			expectRefused(t, get(t, sources, plainly(inRepository(server.URL+"/charts", "1.0.0"))), test.reason)
		})
	}
}

// TestIndexThatDidNotChange has repositories which tell by one header or the other that
// their index is the one that was sent before: it isn't sent again.
func TestIndexThatDidNotChange(t *testing.T) {
	archive := chartVersion(t, "2.0.0")
	for header, condition := range map[string]string{"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
		t.Run(header, func(t *testing.T) {
			index, state, sent, unchanged := "entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n", `"one"`, 0, 0
			sources, clock, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/index.yaml"):
					_, _ = w.Write(archive)
				case r.Header.Get(condition) == state:
					unchanged++
					w.WriteHeader(http.StatusNotModified)
				default:
					sent++
					w.Header().Set(header, state)
					fmt.Fprint(w, index)
				}
			})
			ref.Chart.Version = "2.0.0"
			for asked := range 3 {
				if reason := asError(t, get(t, sources, ref)).Reason; reason != failure.ArtifactNotFound {
					t.Fatalf("got %s", reason)
				}
				if sent != 1 || unchanged != asked {
					t.Errorf("asked %d times: it was sent %d times, and said to be unchanged %d times", asked+1, sent, unchanged)
				}
				clock.Step(time.Hour)
			}
			index, state = "entries:\n  demo:\n  - version: 2.0.0\n    urls: [demo.tgz]\n", `"two"`
			expectFetched(t, sources, ref)
			must.Equal(t, 2, sent, "times that it was sent once it changed")
		})
	}
}
