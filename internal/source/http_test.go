// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestArchiveAtAnAddress(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	digest := digestOf(archive)
	var requests atomic.Int32
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+sentinelToken || r.URL.RawQuery != "key=sentinel" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=latin1") // which nobody asked
		_, _ = w.Write(archive)
	})
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	ref := atAddress(server.URL+"/private/demo-1.0.0.tgz?key=sentinel", digest)
	got := expectFetched(t, sources, ref)
	if got.Digest != digest || len(got.Files) != 1 {
		t.Errorf("got %s with %q", got.Digest, namesOf(got))
	}
	expectFetched(t, sources, ref)
	must.Equal(t, 1, requests.Load(), "requests")
	version := sources.Version(t.Context(), ref)
	expectNoSecrets(t, version)
	if !strings.Contains(version, digest) {
		t.Errorf("its version is %s", version)
	}

	other := atAddress(server.URL+"/private/demo-1.0.0.tgz?key=sentinel-wrong", digest)
	expectRefused(t, get(t, sources, other), failure.SourceUnauthorized)
}

// Users who may write an AddonStack may name any path of a host. The instance's own
// credentials go only to the paths that they are for. Nobody reads what is there by its digest.
func TestOwnCredentialsForAddressesAreForPaths(t *testing.T) {
	document := "apiVersion: v1\nkind: PodList\nitems: []\n"
	var seen atomic.Value
	server, dir := serveAt(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, document)
	})
	for path, sent := range map[string]bool{
		"/private/x.yaml": true, "/private": true, "/private/a/b?c=d": true,
		"/api/v1/pods": false, "/": false, "/privateer/x": false,
	} {
		seen.Store("")
		sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		err := get(t, sources, as(artifact.KindManifests, atAddress(server.URL+path, digestOf("a guess"))))
		expectRefused(t, err, failure.DigestMismatch)
		must.Equal(t, sent, seen.Load() == "Bearer "+sentinelToken, path)
		if strings.Contains(err.Error(), digestOf(document)) {
			t.Errorf("%s: the error tells the digest: %v", path, err)
		}
	}
	for _, path := range []string{"/private/../api/v1/pods", "/private/%2e%2e/api/v1/pods", "/private/..%2fapi"} {
		seen.Store("nothing")
		sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
		err := get(t, sources, atAddress(server.URL+path, digestOf(document)))
		expectRefused(t, err, failure.ArtifactRefused)
		must.Equal[any](t, "nothing", seen.Load(), path)
	}
}

const (
	installYAML = "kind: Role\n---\nkind: Role\n"
	installJSON = "{\n\t\"kind\": \"Role\"\n}\n"
)

// expectPlain fetches manifests that are one file.
func expectPlain(t *testing.T, sources *source.Sources, ref reference.Reference, name, text string) {
	t.Helper()
	got := expectFetched(t, sources, ref)
	if got.Digest != digestOf(text) {
		t.Errorf("%s: the digest isn't what sha256sum prints", ref)
	}
	if len(got.Files) != 1 || got.Files[0].Name != name || string(got.Files[0].Data) != text {
		t.Errorf("%s: got %q", ref, namesOf(got))
	}
}

// TestPlainManifestsAtPaths has the same file in the artifact root, and in bundles.
func TestPlainManifestsAtPaths(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"install.yaml": installYAML, "deep/install.yml": installYAML, "install.json": installJSON, "notes.txt": installYAML,
		"web/kustomization.yaml": "resources: []\n", "page.yaml": "<html>",
		"a.tgz": string(targz.Files(t, map[string]string{"install.yaml": installYAML})),
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
		write(t, filepath.Join(root, "bundle", name), text)
	}
	write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, files)))
	sources := newSources(t, source.Options{ArtifactRoot: root})
	for _, bundle := range []string{"", "bundle", "bundle.tgz"} {
		at := func(path string, kind artifact.Kind) reference.Reference {
			ref := reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Path: path}, Kind: kind}
			if bundle != "" {
				ref = ref.In(&addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: bundle}})
			}
			return ref
		}
		expectPlain(t, sources, at("install.yaml", artifact.KindManifests), artifact.PlainYAML, installYAML)
		expectPlain(t, sources, at("deep/install.yml", artifact.KindManifests), artifact.PlainYAML, installYAML)
		expectPlain(t, sources, at("install.json", artifact.KindManifests), artifact.PlainJSON, installJSON)
		if bundle != "" {
			expectPlain(t, sources, at("a.tgz/install.yaml", artifact.KindManifests), artifact.PlainYAML, installYAML)
		}
		if got := namesOf(expectFetched(t, sources, at("a.tgz", artifact.KindManifests))); !slices.Equal(got, []string{"install.yaml"}) {
			t.Errorf("the archive has %q", got)
		}
		for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization} { // also after manifests took the same file
			expectRefused(t, get(t, sources, at("install.yaml", kind)), failure.ArtifactInvalid)
		}
		for _, path := range []string{"notes.txt", "web/kustomization.yaml", "page.yaml"} {
			expectRefused(t, get(t, sources, at(path, artifact.KindManifests)), failure.ArtifactInvalid)
		}
	}
	ref := reference.Reference{Chart: addonsv1.ChartSource{Path: "install.yaml"}, Kind: artifact.KindManifests}
	write(t, filepath.Join(root, "install.yaml"), "kind: ClusterRole\n")
	expectPlain(t, sources, ref, artifact.PlainYAML, "kind: ClusterRole\n")
}

// TestPlainManifestsAtAnAddress restarts with what is on the disk.
func TestPlainManifestsAtAnAddress(t *testing.T) {
	page := false
	server, dir := serveAt(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip") // which doesn't matter
		if page {
			_, _ = io.WriteString(w, "<html>sentinel")
			return
		}
		_, _ = io.WriteString(w, installYAML)
	})
	ref := as(artifact.KindManifests, atAddress(server.URL+"/install.yaml", digestOf(installYAML)))
	kept := t.TempDir()
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir, Store: storeAt(kept)})
	expectPlain(t, sources, ref, artifact.PlainYAML, installYAML)
	for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization} {
		other := ref
		other.Kind = kind
		expectRefused(t, get(t, sources, other), failure.ArtifactInvalid)
	}
	other := as(artifact.KindManifests, atAddress(server.URL+"/install.yaml", digestOf("another")))
	expectRefused(t, get(t, sources, other), failure.DigestMismatch)
	page = true
	expectRefused(t, get(t, sources, as(artifact.KindManifests, atAddress(server.URL+"/other.yaml", digestOf("another")))), failure.DigestMismatch)
	server.Close()
	restarted, _ := remoteSources(t, source.Options{CredentialsDir: dir, Store: storeAt(kept)})
	expectPlain(t, restarted, ref, artifact.PlainYAML, installYAML)
}

func TestPlainManifestsInReleases(t *testing.T) {
	for name, options := range map[string]github.Options{"digests": {}, "no digests": {WithoutDigests: true}} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, options)
			w.publish("v1", file("install.yaml", []byte(installYAML)), file("demo.tgz", chartVersion(t, "1.0.0")), file("page.yaml", []byte("<html>")))
			sources := w.sources(t, "")
			expectPlain(t, sources, as(artifact.KindManifests, w.chart("v1", called("install.yaml"))), artifact.PlainYAML, installYAML)
			expectPlain(t, sources, as(artifact.KindManifests, w.chart("v1", called("install.yaml"), being(digestOf(installYAML)))), artifact.PlainYAML, installYAML)
			expectRefused(t, get(t, sources, as(artifact.KindManifests, w.chart("v1", called("page.yaml")))), failure.ArtifactInvalid)
			expectRefused(t, get(t, sources, w.chart("v1", called("install.yaml"))), failure.ArtifactInvalid)
		})
	}
}

// TestPlainManifestsInARegistry pushes a file as the only layer.
func TestPlainManifestsInARegistry(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	server.PushArchive(t, []byte(installYAML), "policies", "v1")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, "", "")
	sources, _ := remoteSources(t, source.Options{CredentialsDir: dir})
	expectPlain(t, sources, as(artifact.KindManifests, inRegistry(server.URL("policies"), "v1")), artifact.PlainYAML, installYAML)
}
