// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/chartfiles"
)

// Directories of the artifact root and of bundles have others beside them.
func TestDependenciesBeside(t *testing.T) {
	root := t.TempDir()
	put := func(at string, files map[string]string) {
		for name, data := range files {
			write(t, filepath.Join(root, "stage", at, name), data)
		}
	}
	beside := chartfiles.Dep("common", ">=1.0.0", "file://../lib/common")
	put("umbrella", chartfiles.Of(t, "umbrella", "1.0.0", chartfiles.Deps(beside)))
	put("lib/common", chartfiles.Of(t, "common", "1.2.0", chartfiles.Deps(chartfiles.Dep("base", "0.1.0", "file://../base")), "note", "first", ".helmignore", "*.bak\n", "x.bak", ""))
	put("lib/base", chartfiles.Of(t, "base", "0.1.0", nil, "note", "base"))
	clock := clocktesting.NewFakeClock(time.Now().Add(time.Hour))
	sources := newSources(t, Options{ArtifactRoot: root, Clock: clock})
	const common, base = "charts/common-1.2.0/note", "charts/common-1.2.0/charts/base-0.1.0/note"

	bundle := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "stage"}}
	for name, ref := range map[string]reference.Reference{"the artifact root": atPath("stage/umbrella"), "a bundle": atPath("umbrella").In(bundle)} {
		t.Run(name, func(t *testing.T) {
			fetched := expectFetched(t, sources, ref)
			if a, b := contentOf(t, fetched, common), contentOf(t, fetched, base); a != "first" || b != "base" {
				t.Errorf("they are %q and %q", a, b)
			}
			if artifact.Find(fetched.Files, "charts/common-1.2.0/x.bak") != nil {
				t.Error("what .helmignore names is there")
			}
			if fetched.Digest != (artifact.Content{Files: fetched.Files}).Digest() {
				t.Error("the digest isn't that of all of it")
			}
		})
	}
	t.Run("a dependency that changes changes the chart", func(t *testing.T) {
		before := expectResolved(t, sources, atPath("stage/umbrella"))
		for at, note := range map[string]string{"lib/common": "second", "lib/base": "third"} {
			put(at, map[string]string{"note": note})
			after := expectResolved(t, sources, atPath("stage/umbrella"))
			if after == before {
				t.Errorf("%s isn't in the digest", at)
			}
			before = after
		}
		if got := contentOf(t, expectFetched(t, sources, atPath("stage/umbrella")), base); got != "third" {
			t.Errorf("it is %q", got)
		}
	})
	t.Run("a dependency with some elsewhere", func(t *testing.T) {
		put("lib/base", map[string]string{artifact.ChartFile: chartfiles.ChartYAML(t, "base", "0.1.0", chartfiles.Dep("redis", "1.x", "https://charts.example.org"))})
		_, err := sources.Resolve(t.Context(), atPath("stage/umbrella"))
		failed := asError(t, err)
		if failed.Reason != failure.ArtifactInvalid || !strings.Contains(err.Error(), `dependencies[0] of Chart.yaml of chart "base 0.1.0", "redis 1.x"`) {
			t.Errorf("got %+v", failed)
		}
		put("lib/base", map[string]string{artifact.ChartFile: chartfiles.ChartYAML(t, "base", "0.1.0")})
		expectFetched(t, sources, atPath("stage/umbrella"))
	})

	archive := chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", nil))
	write(t, filepath.Join(root, "stage", "umbrella.tgz"), string(archive))
	write(t, filepath.Join(root, "stage", "lib", "file"), "")
	write(t, filepath.Join(root, "links", "x"), "")
	link(t, "/etc", filepath.Join(root, "links", "etc"))
	for name, test := range map[string]struct {
		path         string
		declared     []string // name, version, repository; of the chart at path
		reason, says string
	}{
		"nothing there":     {declared: []string{"common", "1.x", "file://../gone"}, reason: failure.ArtifactNotFound, says: `gone"`},
		"outside":           {declared: []string{"common", "1.x", "file://../../../common"}, reason: failure.ArtifactRefused, says: "its path has to be relative, and to stay in the artifact"},
		"absolute":          {declared: []string{"common", "1.x", "file:///etc"}, reason: failure.ArtifactRefused, says: "its path has to be relative"},
		"by a link":         {declared: []string{"common", "1.x", "file://../../links/etc"}, reason: failure.ArtifactRefused, says: "leads out of the artifact root"},
		"a file":            {declared: []string{"common", "1.x", "file://../lib/file"}, reason: failure.ArtifactInvalid, says: "doesn't end in .tgz"},
		"an archive beside": {declared: []string{"common", "1.x", "file://../umbrella.tgz"}, reason: failure.ArtifactInvalid, says: "isn't a directory"},
		"no chart":          {declared: []string{"common", "1.x", "file://../lib"}, reason: failure.ArtifactInvalid, says: "no Chart.yaml"},
		"itself":            {declared: []string{"common", "1.x", "file://."}, reason: failure.ArtifactRefused, says: "depends on a chart that depends on it"},
		"what it is in":     {declared: []string{"common", "1.x", "file://.."}, reason: failure.ArtifactRefused, says: "or is in it"},
		"another version":   {declared: []string{"common", "2.x", "file://../lib/common"}, reason: failure.ArtifactInvalid, says: `what is at "stage/lib/common" is chart "common 1.2.0"`},
		"another chart":     {declared: []string{"redis", "1.x", "file://../lib/common"}, reason: failure.ArtifactInvalid, says: `is chart "common 1.2.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.path == "" {
				test.path = "case"
				declared := chartfiles.Deps(chartfiles.Dep(test.declared[0], test.declared[1], test.declared[2]))
				if err := os.RemoveAll(filepath.Join(root, "stage", "case")); err != nil {
					t.Fatal(err)
				}
				put("case", chartfiles.Of(t, "case", "1.0.0", declared))
			}
			for _, ref := range []reference.Reference{atPath("stage/" + test.path), atPath(test.path).In(bundle)} {
				if ref.Bundle != nil && strings.Contains("by a link a file outside another version what it is in an archive beside", name) {
					continue // bundles have no links, and their paths are others
				}
				digest, err := sources.Resolve(t.Context(), ref)
				if err == nil {
					_, err = sources.Fetch(t.Context(), ref, digest)
				}
				if failed := asError(t, err); failed.Reason != test.reason || !strings.Contains(err.Error(), test.says) && ref.Bundle == nil {
					t.Errorf("got %s: %v", failed.Reason, err)
				}
			}
		})
	}
}

// A circle of directories is told, and so is a chain without an end.
func TestCirclesBeside(t *testing.T) {
	root := t.TempDir()
	for name, next := range map[string]string{"a": "b", "b": "a"} {
		write(t, filepath.Join(root, name, artifact.ChartFile), chartfiles.ChartYAML(t, name, "1.0.0", chartfiles.Dep(next, "1.0.0", "file://../"+next)))
	}
	for i := range 8 {
		name, next := string(rune('c'+i)), string(rune('d'+i))
		write(t, filepath.Join(root, name, artifact.ChartFile), chartfiles.ChartYAML(t, name, "1.0.0", chartfiles.Dep(next, "1.0.0", "file://../"+next)))
	}
	sources := newSources(t, Options{ArtifactRoot: root})
	for path, says := range map[string]string{"a": "depends on a chart that depends on it", "c": "more than 4 deep"} {
		if _, err := sources.Resolve(t.Context(), atPath(path)); asError(t, err).Reason != failure.ArtifactRefused || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A change of a directory beside the chart is an event of the chart.
func TestWatchBeside(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "umbrella", artifact.ChartFile), chartfiles.ChartYAML(t, "umbrella", "1.0.0", chartfiles.Dep("common", "1.x", "file://../lib/common")))
	write(t, filepath.Join(root, "lib", "common", artifact.ChartFile), chartfiles.ChartYAML(t, "common", "1.0.0"))
	sources := newSources(t, Options{ArtifactRoot: root})
	expectResolved(t, sources, atPath("umbrella"))
	changed := make(chan string, 10)
	ended := make(chan error)
	go func() { ended <- sources.Watch(t.Context(), func(path string) { changed <- path }) }()
	t.Cleanup(func() { <-ended })
	deadline := time.After(20 * time.Second)
	for i := 0; ; i++ {
		write(t, filepath.Join(root, "lib", "common", "values.yaml"), strings.Repeat("x", i))
		select {
		case path := <-changed:
			if path != "umbrella" {
				t.Errorf("%s has changed", path)
			}
			return
		case <-time.After(100 * time.Millisecond): // the watch may have begun after the change
		case <-deadline:
			t.Fatal("nobody told")
		}
	}
}

// A chart's directory in a bundle may have an archive in charts/ that nobody has looked
// into yet: to see which dependency it is mustn't cost more than to unpack it may.
func TestHostileArchiveBesideDependencies(t *testing.T) {
	const members = 80 // each expands to 64 MiB
	var zeros, head bytes.Buffer
	compress := func(into *bytes.Buffer, data []byte) {
		to := gzip.NewWriter(into)
		_, err := to.Write(data)
		if err = errors.Join(err, to.Close()); err != nil {
			t.Fatal(err)
		}
	}
	compress(&zeros, make([]byte, 64<<20))
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "bomb/a", Size: members * 64 << 20, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	compress(&head, header.Bytes())
	bomb := head.String() + strings.Repeat(zeros.String(), members)

	root := t.TempDir()
	for at, files := range map[string]map[string]string{
		"umbrella": chartfiles.Of(t, "umbrella", "1.0.0", chartfiles.Deps(chartfiles.Dep("common", "1.0.0", "file://../common")), "charts/bomb.tgz", bomb),
		"common":   chartfiles.Of(t, "common", "1.0.0", nil),
	} {
		for name, data := range files {
			write(t, filepath.Join(root, "stage", at, name), data)
		}
	}
	sources := newSources(t, Options{ArtifactRoot: root})
	bundle := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "stage"}}
	for name, ref := range map[string]reference.Reference{"the artifact root": atPath("stage/umbrella"), "a bundle": atPath("umbrella").In(bundle)} {
		begun := time.Now()
		_, err := sources.Resolve(t.Context(), ref)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s: it took %s", name, took)
		}
		if failed := asError(t, err); !strings.Contains(failed.Error(), "charts/bomb.tgz") {
			t.Errorf("%s: got %v", name, failed)
		}
	}
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
