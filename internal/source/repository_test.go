// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// repository is a Helm repository: files in a directory, served with TLS and basic authentication.
type repository struct {
	*httptest.Server
	dir string
	ca  []byte

	mu       sync.Mutex
	requests []string
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
		files.ServeHTTP(w, request)
	}))
	t.Cleanup(r.Close)
	if plainHTTP {
		r.Start()
		return r, nil
	}
	authority := registry.NewAuthority(t)
	certificate, key := authority.Issue(t)
	pair, err := tls.X509KeyPair(certificate, key)
	must.Succeed(t, err)
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
		sum = strings.TrimPrefix(digestOf(archive), "sha256:")
	}
	must.Succeed(t, index.MustAdd(&chart.Metadata{APIVersion: "v2", Name: "demo", Version: version}, name, url, sum))
	must.Succeed(t, index.WriteFile(filepath.Join(r.dir, "charts", "index.yaml"), 0o600))
	return archive
}
