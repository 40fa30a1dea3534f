// SPDX-License-Identifier: Apache-2.0

// Package fluxserver serves artifacts as Flux's source-controller does: plain files, without TLS and credentials.
package fluxserver

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/must"
)

// Server has the artifacts of all objects, the newest of each alone.
type Server struct {
	*httptest.Server
	// Requests are those for files.
	Requests atomic.Int32

	dir string
}

// Start returns a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir()}
	files := http.FileServer(http.Dir(s.dir))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Object returns an object whose artifact is served.
func (s *Server) Object(t testing.TB, kind, namespace, name, revision string, archive []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	o.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.Object["status"] = map[string]any{"artifact": s.Artifact(t, o, revision, archive)}
	return o
}

// Artifact serves an archive in the place of what the object had, and returns what its status is to say of it.
func (s *Server) Artifact(t testing.TB, o *unstructured.Unstructured, revision string, archive []byte) map[string]any {
	t.Helper()
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	of := filepath.Join(strings.ToLower(o.GetKind()), o.GetNamespace(), o.GetName())
	must.Succeed(t, os.RemoveAll(filepath.Join(s.dir, of)))
	must.Succeed(t, os.MkdirAll(filepath.Join(s.dir, of), 0o755))
	path := filepath.Join(of, sum+".tar.gz")
	must.Succeed(t, os.WriteFile(filepath.Join(s.dir, path), archive, 0o600))
	return map[string]any{
		"url": s.URL + "/" + path, "path": path, "revision": revision, "digest": "sha256:" + sum, "lastUpdateTime": "2026-01-01T00:00:00Z",
	}
}
