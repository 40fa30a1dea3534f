// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/targz"
)

func kustomizationAt(path string) reference.Reference {
	return reference.KustomizationOf("team-a", &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Path: path}})
}

// TestFilesKeepTheirNames reads archives of the forms that tools make.
func TestFilesKeepTheirNames(t *testing.T) {
	cases := map[string]struct {
		entries []targz.Entry
		want    []string
	}{
		"of `tar -C directory .`": {
			[]targz.Entry{{Name: "./", Kind: tar.TypeDir}, {Name: "./base/", Kind: tar.TypeDir}, {Name: "./base/a.yaml"}, {Name: "./kustomization.yaml"}},
			[]string{"base/a.yaml", "kustomization.yaml"},
		},
		"of `tar *`":          {[]targz.Entry{{Name: "kustomization.yaml"}, {Name: "a.yaml"}}, []string{"a.yaml", "kustomization.yaml"}},
		"with a top level":    {[]targz.Entry{{Name: "web-1.0/"}, {Name: "web-1.0/x/.hidden"}, {Name: "web-1.0/a.yaml"}}[1:], []string{"web-1.0/a.yaml", "web-1.0/x/.hidden"}},
		"with several":        {[]targz.Entry{{Name: "base/a.yaml"}, {Name: "overlay/a.yaml"}}, []string{"base/a.yaml", "overlay/a.yaml"}},
		"with charts in it":   {[]targz.Entry{{Name: "charts/a.tgz", Data: "no archive"}}, []string{"charts/a.tgz"}},
		"with a helm ignore":  {[]targz.Entry{{Name: ".helmignore", Data: "a.yaml"}, {Name: "a.yaml"}}, []string{".helmignore", "a.yaml"}},
		"with nothing at all": {nil, []string{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "a.tgz"), string(targz.Of(t, c.entries...)))
			sources := newSources(t, source.Options{ArtifactRoot: root})
			must.Equal(t, c.want, namesOf(expectFetched(t, sources, kustomizationAt("a.tgz"))))
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, entries := range map[string][]targz.Entry{
		"leaves the chart": {{Name: "../a.yaml"}},
		"absolute":         {{Name: ".//a.yaml"}},
		"there twice":      {{Name: "./a.yaml"}, {Name: "a.yaml"}},
		"a symbolic link":  {{Name: "a", Kind: tar.TypeSymlink, Link: "/etc/passwd"}},
		"a hard link":      {{Name: "a", Kind: tar.TypeLink, Link: "/etc/passwd"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "a.tgz"), string(targz.Of(t, entries...)))
			sources := newSources(t, source.Options{ArtifactRoot: root})
			ref := kustomizationAt("a.tgz")
			err := get(t, sources, ref)
			expectRefused(t, err, failure.ArtifactRefused)
			must.Equal(t, "kustomization.path", asError(t, err).Field, "it is about")
		})
	}
}

// TestFilesOfADirectory takes all files, less git's own, and notices changes.
func TestFilesOfADirectory(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"web/kustomization.yaml", "web/base/a.yaml", "web/.git/config", "web/base/.git/config", "web/.env", "web/.helmignore"} {
		write(t, filepath.Join(root, name), "base\n")
	}
	sources := newSources(t, source.Options{ArtifactRoot: root})
	ref := kustomizationAt("web")
	first := expectFetched(t, sources, ref)
	must.Equal(t, []string{".env", ".helmignore", "base/a.yaml", "kustomization.yaml"}, namesOf(first))
	// It is no chart, and says so, whatever is known of it.
	_, err := sources.Resolve(t.Context(), atPath("web"))
	if got := asError(t, err); got.Reason != failure.ArtifactInvalid || got.Field != "chart.path" {
		t.Errorf("got %s: %v", got.Reason, err)
	}
	must.Succeed(t, os.Remove(filepath.Join(root, "web", ".env")))
	if second := expectFetched(t, sources, ref); second.Digest == first.Digest || len(second.Files) != 3 {
		t.Errorf("after a change: %v", namesOf(second))
	}
}

// TestOneArchiveAsChartAndAsFiles asks for the same content both ways, in both orders.
func TestOneArchiveAsChartAndAsFiles(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "chart.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/templates/a.yaml"})))
	write(t, filepath.Join(root, "files.tgz"), string(targz.Of(t, targz.Entry{Name: "a.yaml"})))
	for _, key := range []string{"chart.tgz", "files.tgz"} {
		chart := atPath(key)
		files := reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{Path: key}})
		for _, order := range [][]reference.Reference{{chart, files}, {files, chart}, {files, chart, files}} {
			sources := newSources(t, source.Options{ArtifactRoot: root})
			for _, ref := range order {
				fetched, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
				switch {
				case ref.Kind == artifact.KindChart && key == "files.tgz":
					if got := asError(t, err); got.Field != "chart.path" {
						t.Errorf("got %v", err)
					}
				case err != nil:
					t.Errorf("%s: %v", ref, err)
				case ref.Kind == artifact.KindChart && fetched.Files[0].Name != "Chart.yaml", ref.Kind != artifact.KindChart && key == "chart.tgz" && fetched.Files[0].Name != "demo/Chart.yaml":
					t.Errorf("%s: %v", ref, namesOf(fetched))
				}
			}
		}
	}
}

func TestRealCharts(t *testing.T) {
	root := realdata.Path(t, "charts")
	archives, err := filepath.Glob(filepath.Join(root, "*.tgz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in %s: %v", root, err)
	}
	sources := newSources(t, source.Options{ArtifactRoot: root})
	for _, file := range archives {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			fetched := expectFetched(t, sources, atPath(name))
			data, err := os.ReadFile(file)
			must.Succeed(t, err)
			sum := sha256.Sum256(data)
			must.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), fetched.Digest, "its digest is")
			if again := expectFetched(t, newSources(t, source.Options{ArtifactRoot: root}), atPath(name)); again.Digest != fetched.Digest {
				t.Errorf("its digest is %s for another instance", again.Digest)
			}
			for _, want := range []string{"Chart.yaml", "values.yaml"} {
				if !slices.Contains(namesOf(fetched), want) {
					t.Errorf("it has no %s", want)
				}
			}

			// Unpacked, it is the same chart, but for what its .helmignore leaves out.
			dir := t.TempDir()
			for _, file := range fetched.Files {
				write(t, filepath.Join(dir, "chart", file.Name), string(file.Data))
			}
			directory := expectFetched(t, newSources(t, source.Options{ArtifactRoot: dir}), atPath("chart"))
			for _, file := range directory.Files {
				if !slices.Contains(namesOf(fetched), file.Name) {
					t.Errorf("the directory has %s in addition", file.Name)
				}
			}
		})
	}
}
