// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// repository is a Helm repository: files in a directory, served with TLS and basic authentication.
type repository struct {
	*httptest.Server
	dir string
	ca  []byte

	mu       sync.Mutex
	requests []string

	unchanged atomic.Int32 // answers without content: what was asked for is what it was
}

// countingWriter counts such answers.
type countingWriter struct {
	http.ResponseWriter
	unchanged *atomic.Int32
}

func (w countingWriter) WriteHeader(status int) {
	if status == http.StatusNotModified {
		w.unchanged.Add(1)
	}
	w.ResponseWriter.WriteHeader(status)
}

func startRepository(t testing.TB, plainHTTP, clientCertificate bool) (*repository, *registry.Authority) {
	t.Helper()
	r := &repository{dir: t.TempDir()}
	files := http.FileServer(http.Dir(r.dir))
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		known := user == sentinelUser && password == sentinelPassword || plainHTTP || clientCertificate
		r.mu.Lock()
		r.requests = append(r.requests, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
		if !known {
			http.Error(w, "no "+password, http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(countingWriter{w, &r.unchanged}, request)
	}))
	t.Cleanup(r.Close)
	if plainHTTP {
		r.Start()
		return r, nil
	}
	authority := registry.NewAuthority(t)
	certificate, key := authority.Issue(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	r.ca = authority.PEM
	r.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if clientCertificate {
		r.TLS.ClientAuth, r.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		r.TLS.ClientCAs.AppendCertsFromPEM(authority.PEM)
	}
	r.Config.ErrorLog = quiet
	r.StartTLS()
	return r, authority
}

func (r *repository) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// publish adds an archive, and an index with Helm's own code.
func (r *repository) publish(t testing.TB, index *repo.IndexFile, version, url string, digest bool) []byte {
	t.Helper()
	archive := chartVersion(t, version)
	name := "demo-" + version + ".tgz"
	write(t, filepath.Join(r.dir, "charts", name), string(archive))
	sum := ""
	if digest {
		sum = strings.TrimPrefix(artifact.Content{Archive: archive}.Digest(), "sha256:")
	}
	if err := index.MustAdd(&chart.Metadata{APIVersion: "v2", Name: "demo", Version: version}, name, url, sum); err != nil {
		t.Fatal(err)
	}
	if err := index.WriteFile(filepath.Join(r.dir, "charts", "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

// inRepository refers to a chart in a Helm repository.
func inRepository(url, version string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: url, Chart: "demo"}, Version: version}}
}

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
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})

	for version, archive := range map[string][]byte{"1.0.0": absolute, "1.1.0": relative, "v1.2.0": noDigest} {
		t.Run(version, func(t *testing.T) {
			fetched := expectFetched(t, sources, inRepository(server.URL+"/charts", version))
			if want := (artifact.Content{Archive: archive}).Digest(); fetched.Digest != want {
				t.Errorf("digest %s, want %s", fetched.Digest, want)
			}
			again := expectFetched(t, sources, inRepository(server.URL+"/charts", version))
			if again != fetched {
				t.Error("it was unpacked twice")
			}
		})
	}
	asked := server.asked()
	slices.Sort(asked)
	want := []string{"GET /charts/demo-1.0.0.tgz", "GET /charts/demo-1.2.0.tgz", "GET /charts/demo-v1.1.0.tgz", "GET /charts/index.yaml"}
	if !slices.Equal(asked, want) {
		t.Errorf("requests %q, want each archive and the index once", asked)
	}

	t.Run("a version that comes later", func(t *testing.T) {
		ref := inRepository(server.URL+"/charts", "2.0.0")
		_, err := sources.Resolve(t.Context(), ref)
		expectError(t, err, failure.ArtifactNotFound, "chart.helm: "+server.URL+`/charts/demo 2.0.0: the repository has chart "demo", but not in version "2.0.0"; publish it, or correct version`)
		server.publish(t, index, "2.0.0", "", true)
		if err := os.Chtimes(filepath.Join(server.dir, "charts", "index.yaml"), time.Now().Add(time.Hour), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		clock.Step(2 * failure.MaxNotFound)
		expectFetched(t, sources, ref)
	})
	t.Run("an index that didn't change isn't sent again", func(t *testing.T) {
		clock.Step(time.Hour)
		ref := inRepository(server.URL+"/charts", "3.0.0")
		before := server.asked()
		_, err := sources.Resolve(t.Context(), ref)
		if asError(t, err).Reason != failure.ArtifactNotFound {
			t.Errorf("%v after %q", err, before)
		}
		if asked, unchanged := server.asked(), server.unchanged.Swap(0); !slices.Equal(asked, []string{"GET /charts/index.yaml"}) || unchanged != 1 {
			t.Errorf("requests %q, %d of them answered with 304", asked, unchanged)
		}
		_, _ = sources.Resolve(t.Context(), inRepository(server.URL+"/charts", "4.0.0"))
		if asked := server.asked(); len(asked) > 0 {
			t.Errorf("requests %q; what didn't change is new", asked)
		}
	})
	t.Run("overwritten", func(t *testing.T) {
		ref := inRepository(server.URL+"/charts", "1.0.0")
		digest := expectResolved(t, sources, ref)
		write(t, filepath.Join(server.dir, "charts", "demo-1.0.0.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/other", Data: "x"})))
		restarted, _ := remoteSources(t, Options{CredentialsDir: dir})
		_, err := restarted.Fetch(t.Context(), ref, digest)
		expectError(t, err, failure.DigestMismatch, "chart.helm: "+server.URL+
			"/charts/demo 1.0.0: the archive isn't the one that the index names by its digest: it is damaged, or was tampered with; have it put there again")
		pinned := inRepository(server.URL+"/charts", "1.2.0")
		pinned.Chart.Helm.Digest = digest
		_, err = restarted.Fetch(t.Context(), pinned, expectResolved(t, restarted, pinned))
		expectError(t, err, failure.DigestMismatch, "chart.helm: "+server.URL+"/charts/demo 1.2.0@"+digest+
			": the archive isn't the one of helm.digest: it is "+artifact.Content{Archive: noDigest}.Digest()+"; correct one of helm.digest and version. "+place.IfFollowed)
	})
	t.Run("without credentials", func(t *testing.T) {
		for _, name := range []string{".username", ".password"} {
			if err := os.Remove(filepath.Join(dir, key+name)); err != nil {
				t.Fatal(err)
			}
		}
		restarted, _ := remoteSources(t, Options{CredentialsDir: dir})
		_, err := restarted.Resolve(t.Context(), inRepository(server.URL+"/charts", "1.0.0"))
		expectError(t, err, failure.SourceUnauthorized, "chart.helm: "+server.URL+"/charts/demo 1.0.0: "+server.Listener.Addr().String()+
			" answers 401 Unauthorized; name a Secret with credentials in its secretRef, or have them added to the provider instance's own Secret "+
			"chandler-credentials (config.json, or "+key+".username and "+key+".password)")
	})
}

// guestOf is who would ask for the reference.
func guestOf(t testing.TB, sources *Sources, ref reference.Reference) *guest.Guest {
	t.Helper()
	as, err := sources.remote.access.Guest(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return as
}

func TestHelmRepositoryWithClientCertificate(t *testing.T) {
	server, authority := startRepository(t, false, true)
	server.publish(t, repo.NewIndexFile(), "1.0.0", "", true)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), string(server.ca))
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRepository(server.URL+"/charts", "1.0.0")
	_, err := sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnavailable, "chart.helm: "+server.URL+"/charts/demo 1.0.0: "+server.Listener.Addr().String()+
		" fails the TLS handshake: it rejects the handshake; it may want a client certificate (tls.crt and tls.key of the credentials)")
	certificate, key := authority.Issue(t)
	prefix := credentials.KeyOf(strings.TrimPrefix(server.URL, "https://"))
	write(t, filepath.Join(dir, prefix+".tls.crt"), string(certificate))
	_, err = sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized,
		"chart.helm: the provider instance's own Secret chandler-credentials: tls.crt and tls.key are no certificate in PEM and its key; correct both")
	write(t, filepath.Join(dir, prefix+".tls.key"), string(key))
	expectFetched(t, sources, ref)
	clock.Step(0)
}

func TestWhatAnIndexMaySay(t *testing.T) {
	server, _ := startRepository(t, true, false)
	host := strings.TrimPrefix(server.URL, "http://")
	at := func(url string) string {
		return fmt.Sprintf("apiVersion: v1\nentries:\n  demo:\n  - version: 1.0.0\n    urls:\n    - %s\n", url)
	}
	tests := map[string]struct{ index, reason, text string }{
		"in a registry":     {at("oci://registry.example.org/demo:1.0.0"), failure.ArtifactInvalid, `the index says that the chart is in a registry, at "oci://registry.example.org/demo:1.0.0"; use chart.oci`},
		"a file":            {at("file:///etc/passwd"), failure.ArtifactRefused, "the index names an archive by an URL without TLS; https:// is needed, or helm.plainHTTP"},
		"with a user":       {at("http://user:sentinel@" + host + "/demo.tgz"), failure.ArtifactRefused, "the index names an archive by an URL with a user in it; have the index mended, and put credentials into helm.secretRef"},
		"no URL":            {at(`"http://[::"`), failure.ArtifactInvalid, "the index names an archive by what is no URL; have the index mended, or correct version"},
		"a metadata server": {at("http://169.254.169.254/latest/meta-data?sentinel"), failure.ArtifactRefused, "169.254.169.254 is a loopback, link-local or metadata address, which no object may name; correct the address"},
		"missing":           {at("demo-1.0.0.tgz"), failure.ArtifactNotFound, "the index names an archive for this version, but there is none; have it put there, or correct version"},
		"a web page":        {at("page.html"), failure.SourceUnavailable, host + " answers with a web page: something between may want a login, as a proxy does, or it is under maintenance, or the url is that of a page; it is asked again"},
		"another file":      {at("index.yaml"), failure.ArtifactInvalid, "what the repository sends in place of the archive isn't one: it isn't compressed with gzip; have the chart put there"},
		"no such chart":     {"entries: {}", failure.ArtifactNotFound, `the repository has no chart "demo"; publish it, or correct helm.chart`},
		"no index":          {"title: sentinel\n", failure.ArtifactInvalid, "the repository's index.yaml: it isn't an index as `helm repo index` writes it; correct helm.url, or have the index made anew"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(server.dir, "charts", "index.yaml"), test.index)
			write(t, filepath.Join(server.dir, "charts", "page.html"), "<!DOCTYPE html>")
			sources, _ := remoteSources(t, Options{})
			ref := inRepository(server.URL+"/charts", "1.0.0")
			ref.Chart.Helm.PlainHTTP = ptr.To(true)
			_, err := sources.Resolve(t.Context(), ref)
			expectError(t, err, test.reason, "chart.helm: "+server.URL+"/charts/demo 1.0.0: "+test.text)
			expectNoSecrets(t, err.Error())
		})
	}
}
