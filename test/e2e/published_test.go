// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/registry"
)

// sourceKinds are the ways in which a publication offers its charts.
var sourceKinds = []string{"oci", "helm", "http", "github"}

// published is a handler that serves one chart, in version 1.0.0, in each of these
// ways. It does so as a registry at /v2/<name>, as a Helm repository at /<name>, as a
// file, and as a release at GitHub, whose API is at /api/v3/repos/<name>. The archives
// differ.
type published struct {
	name             string
	archives         map[string][]byte // by kind
	registry, github http.Handler
}

// publish makes the charts of a publication, and pushes to a registry what needs one.
func publish(t *testing.T, to *registry.Registry, name string) published {
	t.Helper()
	releases := github.Start(t, github.Options{PlainHTTP: true})
	p := published{name: name, archives: map[string][]byte{}, registry: inFrontOf(to.Host), github: inFrontOf(releases.Host)}
	for _, kind := range sourceKinds {
		c := maps.Clone(configMapChart)
		c["README.md"] = "from " + name + " by " + kind
		p.archives[kind] = c.archive("settings", "1.0.0")
	}
	to.Push(t, p.archives["oci"], name+"/settings", "1.0.0")
	releases.Publish(name+"/settings", github.Release{Tag: "1.0.0", Files: []github.File{{Name: "settings.tgz", Data: p.archives["github"]}}})
	return p
}

// inFrontOf returns a handler that passes requests on to a host that is open to all,
// and follows its redirects.
func inFrontOf(host string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: host})
			r.Out.Header.Del("Authorization") // it isn't for that host
		},
		Transport: following{},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
}

// following is a transport that follows redirects, so that all comes from one host.
type following struct{}

func (following) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RequestURI = ""
	return http.DefaultClient.Do(r)
}

// githubAPI is where the API is at a host of one's own.
const githubAPI = "/api/v3/repos/"

func (p published) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/" + p.name + "/index.yaml":
		_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  settings:\n  - apiVersion: v2\n    name: settings\n    version: 1.0.0\n"+
			"    digest: %s\n    urls: [helm.tgz]\n", strings.TrimPrefix(digestOf(p.archives["helm"]), "sha256:"))
	case "/" + p.name + "/helm.tgz":
		_, _ = w.Write(p.archives["helm"])
	case "/" + p.name + "/http.tgz":
		_, _ = w.Write(p.archives["http"])
	default:
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			p.registry.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, githubAPI) {
			p.github.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	}
}

// from returns the chart as one of the kinds of source, at a server that serves it.
func (p published) from(kind string, server *faulty.Server, more ...func(*addonsv1.ChartSource)) addonsv1.ChartSource {
	chart := addonsv1.ChartSource{Version: "1.0.0"}
	switch kind {
	case "oci":
		chart.OCI = &addonsv1.OCISource{URL: "oci://" + server.Host + "/" + p.name + "/settings"}
	case "helm":
		chart.Helm = &addonsv1.HelmSource{URL: server.URL("/" + p.name), Chart: "settings"}
	case "github":
		chart.GitHub = &addonsv1.GitHubSource{URL: server.URL("/" + p.name + "/settings")}
	case "http":
		chart.HTTP, chart.Version = &addonsv1.HTTPSource{URL: server.URL("/" + p.name + "/http.tgz"), Digest: digestOf(p.archives[kind])}, ""
	}
	for _, m := range more {
		m(&chart)
	}
	return chart
}

// makeClusterWithAll makes a cluster, and a stack of its own with the publication's
// chart from each kind of source.
func (tn *tenant) makeClusterWithAll(name string, s *server, offered published, at func(kind string) *faulty.Server) {
	tn.t.Helper()
	tn.makeCluster(name, s, labels("cluster="+name))
	var addons []addonsv1.Addon
	for _, kind := range sourceKinds {
		addons = append(addons, tn.addon(kind, "", inNamespace(tn.namespace+"-"+name), func(a *addonsv1.Addon) { a.Chart = offered.from(kind, at(kind)) }))
	}
	tn.makeStack(name, labels("cluster="+name), addons...)
}

// serveFiles starts a server of files, by their paths, and returns its host and port.
func serveFiles(t *testing.T, files map[string][]byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if data, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// trusting returns a directory of credentials by which an instance trusts an authority.
func trusting(t *testing.T, authority []byte) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "ca.crt", authority)
	return dir
}

// kindAsked returns the kind of source that a request is for.
func kindAsked(r faulty.Request) string {
	path, _, _ := strings.Cut(r.URI, "?")
	switch {
	case strings.HasPrefix(path, "/v2/"):
		return "oci"
	case strings.HasPrefix(path, githubAPI):
		return "github"
	case strings.HasSuffix(path, "/http.tgz"):
		return "http"
	}
	return "helm"
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
