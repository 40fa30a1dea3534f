// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/registry"
)

const (
	installYAML = "kind: Role\n---\nkind: Role\n"
	installJSON = "{\n\t\"kind\": \"Role\"\n}\n"
)

// manifestsLike is the same reference to manifests.
func manifestsLike(ref reference.Reference) reference.Reference {
	ref.Kind = artifact.KindManifests
	return ref
}

// expectPlain fetches manifests that are one file.
func expectPlain(t *testing.T, sources *Sources, ref reference.Reference, name, text string) {
	t.Helper()
	got := expectFetched(t, sources, ref)
	if got.Digest != digestOfArchive([]byte(text)) {
		t.Errorf("%s: the digest isn't what sha256sum prints", ref)
	}
	if len(got.Files) != 1 || got.Files[0].Name != name || string(got.Files[0].Data) != strings.TrimPrefix(text, string(artifact.UTF8BOM)) {
		t.Errorf("%s: got %q", ref, namesOf(got))
	}
}

// TestUnpackPlainManifests decides by the content alone.
func TestUnpackPlainManifests(t *testing.T) {
	large := strings.Repeat("#", artifact.DefaultFileBytes)
	for name, tc := range map[string]struct{ text, want, reason, says string }{
		"YAML":                    {installYAML, artifact.PlainYAML, "", ""},
		"JSON":                    {installJSON, artifact.PlainJSON, "", ""},
		"with a byte mark":        {string(artifact.UTF8BOM) + installJSON, artifact.PlainJSON, "", ""},
		"YAML that begins so":     {"{kind: Role}", artifact.PlainYAML, "", ""},
		"as large as may be":      {large, artifact.PlainYAML, "", ""},
		"too large":               {large + "#", "", failure.ArtifactTooLarge, "the file is larger than 5242880 bytes"},
		"far too large":           {strings.Repeat("#", artifact.DefaultArchiveBytes+1), "", failure.ArtifactTooLarge, "the archive is larger than 10485760 bytes"},
		"nothing":                 {"", "", failure.ArtifactInvalid, "it is empty; name a file with manifests"},
		"blanks":                  {string(artifact.UTF8BOM) + " \n", "", failure.ArtifactInvalid, "it is empty"},
		"a web page":              {"\n<!DOCTYPE html><p>sentinel", "", failure.ArtifactInvalid, "it is a web page, or other markup, not YAML or JSON"},
		"a web page, marked":      {string(artifact.UTF8BOM) + "<html>", "", failure.ArtifactInvalid, "it is a web page"},
		"UTF-16":                  {"\xff\xfea\x00", "", failure.ArtifactInvalid, "it is neither a gzip-compressed tar archive nor text in UTF-8"},
		"Latin-1":                 {"a: \xe4\n", "", failure.ArtifactInvalid, "nor text in UTF-8"},
		"NUL":                     {"a: \x00\n", "", failure.ArtifactInvalid, "nor text in UTF-8"},
		"the start of an archive": {string(artifact.GzipStart), "", failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := artifact.Limits{}.WithDefaults()
			files, err := artifact.Content{Kind: artifact.KindManifests, Archive: []byte(tc.text)}.Unpack(limits)
			if tc.reason != "" {
				expectRefused(t, err, tc.reason, tc.says)
				expectNoSecrets(t, err.Error())
				return
			}
			if err != nil || len(files) != 1 || files[0].Name != tc.want {
				t.Errorf("got %d files, %v", len(files), err)
			}
			for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization, artifact.KindBundle} { // are archives
				_, err := artifact.Content{Kind: kind, Archive: []byte(tc.text)}.Unpack(limits)
				expectRefused(t, err, failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive")
			}
		})
	}
}

// TestPlainManifestsAtPaths has the same file in the artifact root, and in bundles.
func TestPlainManifestsAtPaths(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"install.yaml": installYAML, "deep/install.yml": installYAML, "install.json": installJSON, "notes.txt": installYAML,
		"web/kustomization.yaml": "resources: []\n", "page.yaml": "<html>",
		"a.tgz": string(packedFiles(t, map[string]string{"install.yaml": installYAML})),
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
		write(t, filepath.Join(root, "bundle", name), text)
	}
	write(t, filepath.Join(root, "bundle.tgz"), string(packedFiles(t, files)))
	sources := newSources(t, Options{ArtifactRoot: root})
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
			expectRefused(t, get(t, sources, at("install.yaml", kind)), failure.ArtifactInvalid, "its name doesn't end in .tgz or .tar.gz")
		}
		for path, says := range map[string]string{
			"notes.txt":              "its name ends in none of .yaml, .yml, .json, .tgz and .tar.gz",
			"web/kustomization.yaml": "it is a kustomization, not a manifest; name its directory in kustomization.path",
			"page.yaml":              "it is a web page",
		} {
			expectRefused(t, get(t, sources, at(path, artifact.KindManifests)), failure.ArtifactInvalid, says)
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
	ref := manifestsLike(atAddress(server.URL+"/install.yaml", digestOfArchive([]byte(installYAML))))
	kept := t.TempDir()
	sources, _ := remoteSources(t, Options{CredentialsDir: dir, Store: storeAt(kept)})
	expectPlain(t, sources, ref, artifact.PlainYAML, installYAML)
	for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization} {
		other := ref
		other.Kind = kind
		expectRefused(t, get(t, sources, other), failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive")
	}
	other := manifestsLike(atAddress(server.URL+"/install.yaml", digestOfArchive([]byte("another"))))
	expectRefused(t, get(t, sources, other), failure.DigestMismatch, "the archive or file of manifests isn't the one of http.digest; compare")
	page = true
	err := get(t, sources, manifestsLike(atAddress(server.URL+"/other.yaml", digestOfArchive([]byte("another")))))
	expectRefused(t, err, failure.SourceUnavailable, "answers with a web page")
	expectNoSecrets(t, err.Error())
	server.Close()
	restarted, _ := remoteSources(t, Options{CredentialsDir: dir, Store: storeAt(kept)})
	expectPlain(t, restarted, ref, artifact.PlainYAML, installYAML)
}

func TestPlainManifestsInReleases(t *testing.T) {
	for name, options := range map[string]github.Options{"digests": {}, "no digests": {WithoutDigests: true}} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, options)
			w.publish("v1", file("install.yaml", []byte(installYAML)), file("demo.tgz", chartVersion(t, "1.0.0")), file("page.yaml", []byte("<html>")))
			sources := w.sources(t, "")
			expectPlain(t, sources, manifestsLike(w.chart("v1", called("install.yaml"))), artifact.PlainYAML, installYAML)
			expectPlain(t, sources, manifestsLike(w.chart("v1", called("install.yaml"), being(digestOfArchive([]byte(installYAML))))), artifact.PlainYAML, installYAML)
			reason, says := failure.ArtifactInvalid, `file "page.yaml" is no archive or file of manifests: it is a web page`
			if options.WithoutDigests { // then it may be in place of the file
				reason, says = failure.SourceUnavailable, "answers with a web page"
			}
			expectRefused(t, get(t, sources, manifestsLike(w.chart("v1", called("page.yaml")))), reason, says)
			expectRefused(t, get(t, sources, w.chart("v1", called("install.yaml"))), failure.ArtifactInvalid, `file "install.yaml" is no archive: it isn't compressed with gzip`)
		})
	}
}

// TestPlainManifestsInARegistry pushes a file as the only layer.
func TestPlainManifestsInARegistry(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	server.PushArchive(t, []byte(installYAML), "policies", "v1")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, "", "")
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	expectPlain(t, sources, manifestsLike(inRegistry(server.URL("policies"), "v1")), artifact.PlainYAML, installYAML)
}
