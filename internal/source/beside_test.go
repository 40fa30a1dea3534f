// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source"
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
	sources := newSources(t, source.Options{ArtifactRoot: root, Clock: clock})
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
		expectRefused(t, get(t, sources, atPath("stage/umbrella")), failure.ArtifactInvalid)
		put("lib/base", map[string]string{artifact.ChartFile: chartfiles.ChartYAML(t, "base", "0.1.0")})
		expectFetched(t, sources, atPath("stage/umbrella"))
	})

	archive := chartfiles.Packed(t, "umbrella", chartfiles.Of(t, "umbrella", "1.0.0", nil))
	write(t, filepath.Join(root, "stage", "umbrella.tgz"), string(archive))
	write(t, filepath.Join(root, "stage", "lib", "file"), "")
	write(t, filepath.Join(root, "links", "x"), "")
	link(t, "/etc", filepath.Join(root, "links", "etc"))
	for name, test := range map[string]struct {
		chart, version, at string // of the dependency
		reason, inBundle   string // "" if there is no such thing in a bundle
	}{
		"nothing there":     {"common", "1.x", "../gone", failure.ArtifactNotFound, failure.ArtifactNotFound},
		"outside":           {"common", "1.x", "../../../common", failure.ArtifactRefused, failure.ArtifactRefused},
		"absolute":          {"common", "1.x", "/etc", failure.ArtifactRefused, failure.ArtifactRefused},
		"by a link":         {"common", "1.x", "../../links/etc", failure.ArtifactRefused, ""},
		"a file":            {"common", "1.x", "../lib/file", failure.ArtifactInvalid, ""},
		"an archive beside": {"common", "1.x", "../umbrella.tgz", failure.ArtifactInvalid, ""},
		"no chart":          {"common", "1.x", "../lib", failure.ArtifactInvalid, failure.ArtifactInvalid},
		"itself":            {"common", "1.x", ".", failure.ArtifactRefused, failure.ArtifactRefused},
		"what it is in":     {"common", "1.x", "..", failure.ArtifactRefused, failure.ArtifactRefused},
		"another version":   {"common", "2.x", "../lib/common", failure.ArtifactInvalid, failure.ArtifactInvalid},
		"another chart":     {"redis", "1.x", "../lib/common", failure.ArtifactInvalid, failure.ArtifactInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(root, "stage", "case")); err != nil {
				t.Fatal(err)
			}
			put("case", chartfiles.Of(t, "case", "1.0.0", chartfiles.Deps(chartfiles.Dep(test.chart, test.version, "file://"+test.at))))
			expectRefused(t, get(t, sources, atPath("stage/case")), test.reason)
			if test.inBundle != "" {
				expectRefused(t, get(t, sources, atPath("case").In(bundle)), test.inBundle)
			}
		})
	}
}

// A circle of directories is refused, and so is a chain without an end.
func TestCirclesBeside(t *testing.T) {
	root := t.TempDir()
	depends := func(name, next string) {
		write(t, filepath.Join(root, name, artifact.ChartFile), chartfiles.ChartYAML(t, name, "1.0.0", chartfiles.Dep(next, "1.0.0", "file://../"+next)))
	}
	depends("a", "b")
	depends("b", "a")
	for i := range 8 {
		depends(string(rune('c'+i)), string(rune('d'+i)))
	}
	sources := newSources(t, source.Options{ArtifactRoot: root})
	for _, path := range []string{"a", "c"} {
		expectRefused(t, get(t, sources, atPath(path)), failure.ArtifactRefused)
	}
}
