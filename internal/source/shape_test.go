// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

func kustomizationAt(path string) Reference {
	return KustomizationOf("team-a", &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Path: path}})
}

func namesOf(artifact *Artifact) []string {
	var names []string
	for _, file := range artifact.Files {
		names = append(names, file.Name)
	}
	return names
}

// TestFilesKeepTheirNames reads archives of the forms that tools make.
func TestFilesKeepTheirNames(t *testing.T) {
	cases := map[string]struct {
		entries []entry
		want    []string
	}{
		"of `tar -C directory .`": {
			[]entry{{name: "./", kind: tar.TypeDir}, {name: "./base/", kind: tar.TypeDir}, {name: "./base/a.yaml"}, {name: "./kustomization.yaml"}},
			[]string{"base/a.yaml", "kustomization.yaml"},
		},
		"of `tar *`":          {[]entry{{name: "kustomization.yaml"}, {name: "a.yaml"}}, []string{"a.yaml", "kustomization.yaml"}},
		"with a top level":    {[]entry{{name: "web-1.0/"}, {name: "web-1.0/x/.hidden"}, {name: "web-1.0/a.yaml"}}[1:], []string{"web-1.0/a.yaml", "web-1.0/x/.hidden"}},
		"with several":        {[]entry{{name: "base/a.yaml"}, {name: "overlay/a.yaml"}}, []string{"base/a.yaml", "overlay/a.yaml"}},
		"with charts in it":   {[]entry{{name: "charts/a.tgz", data: "no archive"}}, []string{"charts/a.tgz"}},
		"with a helm ignore":  {[]entry{{name: ".helmignore", data: "a.yaml"}, {name: "a.yaml"}}, []string{".helmignore", "a.yaml"}},
		"with nothing at all": {nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "a.tgz"), string(archiveOf(t, c.entries...)))
			sources := newSources(t, Options{ArtifactRoot: root})
			if diff := cmp.Diff(c.want, namesOf(expectFetched(t, sources, kustomizationAt("a.tgz")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, entries := range map[string][]entry{
		"leaves the chart": {{name: "../a.yaml"}},
		"absolute":         {{name: ".//a.yaml"}},
		"there twice":      {{name: "./a.yaml"}, {name: "a.yaml"}},
		"is both":          {{name: "a"}, {name: "a/b"}},
		"a symbolic link":  {{name: "a", kind: tar.TypeSymlink, link: "/etc/passwd"}},
		"a hard link":      {{name: "a", kind: tar.TypeLink, link: "/etc/passwd"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "a.tgz"), string(archiveOf(t, entries...)))
			sources := newSources(t, Options{ArtifactRoot: root})
			ref := kustomizationAt("a.tgz")
			_, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
			if got := asError(t, err); got.Reason != failure.ArtifactRefused || got.Field != "kustomization.path" || !strings.Contains(err.Error(), name) {
				t.Errorf("got %s: %v", got.Reason, err)
			}
		})
	}
}

// TestFilesOfADirectory takes all files, less git's own, and notices changes.
func TestFilesOfADirectory(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"web/kustomization.yaml", "web/base/a.yaml", "web/.git/config", "web/base/.git/config", "web/.env", "web/.helmignore"} {
		write(t, filepath.Join(root, name), "base\n")
	}
	sources := newSources(t, Options{ArtifactRoot: root})
	ref := kustomizationAt("web")
	first := expectFetched(t, sources, ref)
	if diff := cmp.Diff([]string{".env", ".helmignore", "base/a.yaml", "kustomization.yaml"}, namesOf(first)); diff != "" {
		t.Error(diff)
	}
	// It is no chart, and says so, whatever is known of it.
	_, err := sources.Resolve(t.Context(), atPath("web"))
	if got := asError(t, err); got.Reason != failure.ArtifactInvalid || got.Field != "chart.path" {
		t.Errorf("got %s: %v", got.Reason, err)
	}
	if err := os.Remove(filepath.Join(root, "web", ".env")); err != nil {
		t.Fatal(err)
	}
	if second := expectFetched(t, sources, ref); second.Digest == first.Digest || len(second.Files) != 3 {
		t.Errorf("after a change: %v", namesOf(second))
	}
}

// TestOneArchiveAsChartAndAsFiles asks for the same content both ways, in both orders.
func TestOneArchiveAsChartAndAsFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "chart.tgz"), string(chartOf(t, entry{name: "demo/templates/a.yaml"})))
	write(t, filepath.Join(root, "files.tgz"), string(archiveOf(t, entry{name: "a.yaml"})))
	for _, key := range []string{"chart.tgz", "files.tgz"} {
		chart := atPath(key)
		files := ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{Path: key}})
		for _, order := range [][]Reference{{chart, files}, {files, chart}, {files, chart, files}} {
			sources := newSources(t, Options{ArtifactRoot: root})
			for _, ref := range order {
				artifact, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
				switch {
				case ref.Kind == KindChart && key == "files.tgz":
					if got := asError(t, err); got.Field != "chart.path" {
						t.Errorf("got %v", err)
					}
				case err != nil:
					t.Errorf("%s: %v", ref, err)
				case ref.Kind == KindChart && artifact.Files[0].Name != "Chart.yaml", ref.Kind != KindChart && key == "chart.tgz" && artifact.Files[0].Name != "demo/Chart.yaml":
					t.Errorf("%s: %v", ref, namesOf(artifact))
				}
			}
		}
	}
}

// TestLayerWithFiles finds the layer in manifests as different tools write them.
func TestLayerWithFiles(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	layer := func(mediaType, c string) string {
		return `{"mediaType":"` + mediaType + `","digest":"` + digest(c) + `","size":1}`
	}
	cases := map[string]struct{ manifest, want, says string }{
		"Flux":              {`{"layers":[` + layer("application/vnd.cncf.flux.content.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"oras, a directory": {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"oras, a file":      {`{"layers":[` + layer("application/vnd.oci.image.layer.v1.tar", "a") + `]}`, digest("a"), ""},
		"an image":          {`{"layers":[` + layer("application/vnd.docker.image.rootfs.diff.tar.gzip", "a") + `]}`, digest("a"), ""},
		"with a text":       {`{"layers":[` + layer("text/plain", "b") + `,` + layer("application/vnd.oci.image.layer.v1.tar+gzip", "a") + `]}`, digest("a"), ""},
		"two archives":      {`{"layers":[` + layer("x/tar+gzip", "b") + `,` + layer("x/tar+gzip", "a") + `]}`, "", "2 of its 2 layers"},
		"none":              {`{"layers":[]}`, "", "0 of its 0 layers"},
		"an index":          {`{"mediaType":"application/vnd.oci.image.index.v1+json"}`, "", "index"},
		"a chart":           {`{"layers":[` + layer(chartLayer, "a") + `]}`, "", "chart.oci"},
		"another digest":    {`{"layers":[{"mediaType":"x/tar+gzip","digest":"sha512:ab","size":1}]}`, "", "SHA-256"},
		"no JSON":           {`<html>`, "", "no JSON"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := filesOfManifest([]byte(c.manifest))
			if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
