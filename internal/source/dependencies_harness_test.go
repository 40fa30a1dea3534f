// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/registry"
)

// shelf is a Helm repository with TLS that notes who asks for what.
type shelf struct {
	*httptest.Server
	ca []byte

	mu       sync.Mutex
	index    *repo.IndexFile
	archives map[string][]byte
	wants    string // user and password; "" for nobody in particular
	down     bool
	requests []string
	shown    []string // Authorization headers
}

func startShelf(t testing.TB, authority *registry.Authority) *shelf {
	t.Helper()
	certificate, key := authority.Issue(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{ca: authority.PEM, index: repo.NewIndexFile(), archives: map[string][]byte{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if shown := r.Header.Get("Authorization"); shown != "" {
		s.shown = append(s.shown, shown)
	}
	user, password, _ := r.BasicAuth()
	switch {
	case s.down:
		panic(http.ErrAbortHandler)
	case s.wants != "" && s.wants != user+":"+password:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/index.yaml":
		data, err := yaml.Marshal(s.index)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(data)
	case s.archives[r.URL.Path] != nil:
		_, _ = w.Write(s.archives[r.URL.Path])
	default:
		http.NotFound(w, r)
	}
}

// publish puts a chart there, in the place of one with the same version. The index
// doesn't say what its digest is.
func (s *shelf) publish(t testing.TB, name, version string, archive []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	file := name + "-" + version + ".tgz"
	if s.archives["/"+file] == nil {
		if err := s.index.MustAdd(&chart.Metadata{APIVersion: "v2", Name: name, Version: version}, file, s.URL, ""); err != nil {
			t.Fatal(err)
		}
	}
	s.archives["/"+file] = archive
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// asked returns the requests since the last call, sorted, and the credentials shown.
func (s *shelf) asked() (requests, shown []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, shown = s.requests, s.shown
	s.requests, s.shown = nil, nil
	slices.Sort(requests)
	return requests, shown
}

// contentOf returns a file of the artifact.
func contentOf(t testing.TB, fetched *Artifact, name string) string {
	t.Helper()
	file := artifact.Find(fetched.Files, name)
	if file != nil {
		return string(file.Data)
	}
	var names []string
	for _, f := range fetched.Files {
		names = append(names, f.Name)
	}
	t.Fatalf("there is no %s among %q", name, names)
	return ""
}

// trusting writes the instance's own credentials: the authorities, and files by name.
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

func hostOf(url string) string { return strings.TrimPrefix(url, "https://") }

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
}
