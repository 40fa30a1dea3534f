// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestArchiveOfTheArtifactRoot(t *testing.T) {
	root := t.TempDir()
	archive := targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: "a: 1"})
	write(t, filepath.Join(root, "charts/demo.tgz"), string(archive))
	write(t, filepath.Join(root, "charts/demo.tar.gz"), string(archive))
	sources := newSources(t, source.Options{ArtifactRoot: root})

	for _, path := range []string{"charts/demo.tgz", "charts/demo.tar.gz", "./charts/demo.tgz"} {
		fetched := expectFetched(t, sources, atPath(path))
		must.Equal(t, digestOf(archive), fetched.Digest, path)
		must.Equal(t, []string{"Chart.yaml", "values.yaml"}, namesOf(fetched), path)
	}
}

func TestDirectoryOfTheArtifactRoot(t *testing.T) {
	root := t.TempDir()
	for name, data := range map[string]string{
		"demo/Chart.yaml":               targz.ChartYAML,
		"demo/.helmignore":              "*.bak\n/ci/\n.git/\n",
		"demo/values.yaml":              "\xef\xbb\xbfa: 1",
		"demo/values.yaml.bak":          "old",
		"demo/ci/values.yaml":           "ci",
		"demo/.git/HEAD":                "ref",
		"demo/templates/x.yaml":         "x",
		"demo/templates/.x.yaml.swp":    "editor",
		"demo/charts/sub/Chart.yaml":    targz.ChartYAML,
		"demo/charts/sub/ci/values.txt": "kept: the rule is about the top",
	} {
		write(t, filepath.Join(root, name), data)
	}
	sources := newSources(t, source.Options{ArtifactRoot: root})
	fetched := expectFetched(t, sources, atPath("demo"))
	want := []string{".helmignore", "Chart.yaml", "charts/sub/Chart.yaml", "charts/sub/ci/values.txt", "templates/x.yaml", "values.yaml"}
	must.Equal(t, want, namesOf(fetched))
	if got := (artifact.Content{Files: fetched.Files}).Digest(); got != fetched.Digest {
		t.Errorf("the digest of the artifact's files is %s, want %s", got, fetched.Digest)
	}
	must.Equal(t, "a: 1", string(fetched.Files[5].Data), "values.yaml is")

	write(t, filepath.Join(root, "demo/values.yaml.bak"), "new")
	must.Equal(t, fetched.Digest, expectResolved(t, sources, atPath("demo")), "an ignored file changed the digest")
	write(t, filepath.Join(root, "demo/.helmignore"), "*.bak\n/ci/\n.git/\nsub/\n")
	fetched = expectFetched(t, sources, atPath("demo"))
	must.Equal(t, []string{".helmignore", "Chart.yaml", "templates/x.yaml", "values.yaml"}, namesOf(fetched))
}

func TestDigestOfADirectory(t *testing.T) {
	digest := func(files map[string]string) string {
		root := t.TempDir()
		write(t, filepath.Join(root, "demo/Chart.yaml"), targz.ChartYAML)
		for name, data := range files {
			write(t, filepath.Join(root, "demo", name), data)
		}
		return expectResolved(t, newSources(t, source.Options{ArtifactRoot: root}), atPath("demo"))
	}
	// Not to be changed: a change would make work on every cluster there is.
	const golden = "sha256:01430c16d933fc00b7abedb1c4896fe50287e63e09b12ab704e9a0635efe128c"
	one := digest(map[string]string{"a": "x", "b": "y"})
	if one != golden {
		t.Errorf("the digest is %s, want %s", one, golden)
	}
	for why, files := range map[string]map[string]string{
		"another content":                    {"a": "x", "b": "z"},
		"another name":                       {"a": "x", "c": "y"},
		"content moved from file to file":    {"a": "xy", "b": ""},
		"content that looks like the others": {"a": "x\x00\x00\x00\x00\x00\x00\x00\x01b\x00\x00\x00\x00\x00\x00\x00\x01y"},
	} {
		if digest(files) == one {
			t.Errorf("%s: the digest is the same", why)
		}
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret.tgz"), string(targz.Chart(t)))
	write(t, filepath.Join(outside, "demo/Chart.yaml"), targz.ChartYAML)
	write(t, filepath.Join(root, "inside/Chart.yaml"), targz.ChartYAML)
	link(t, filepath.Join(outside, "secret.tgz"), filepath.Join(root, "absolute.tgz"))
	relative, err := filepath.Rel(root, filepath.Join(outside, "secret.tgz"))
	must.Succeed(t, err)
	link(t, relative, filepath.Join(root, "relative.tgz"))
	link(t, filepath.Join(outside, "demo"), filepath.Join(root, "directory"))
	link(t, "loop.tgz", filepath.Join(root, "loop.tgz"))
	write(t, filepath.Join(root, "leaky/Chart.yaml"), targz.ChartYAML)
	link(t, filepath.Join(outside, "secret.tgz"), filepath.Join(root, "leaky/values.yaml"))
	write(t, filepath.Join(root, "cycle/Chart.yaml"), targz.ChartYAML)
	link(t, ".", filepath.Join(root, "cycle/again"))
	must.Succeed(t, syscall.Mkfifo(filepath.Join(root, "pipe.tgz"), 0o644))
	write(t, filepath.Join(root, "piped/Chart.yaml"), targz.ChartYAML)
	must.Succeed(t, syscall.Mkfifo(filepath.Join(root, "piped/values.yaml"), 0o644))
	write(t, filepath.Join(root, "chart.yaml"), "x")
	write(t, filepath.Join(root, "empty/values.yaml"), "x")
	write(t, filepath.Join(root, "ignore/Chart.yaml"), targz.ChartYAML)
	write(t, filepath.Join(root, "ignore/.helmignore"), "a/**\n")
	write(t, filepath.Join(root, "large.tgz"), strings.Repeat("x", 10<<20+1))
	write(t, filepath.Join(root, "broken.tgz"), "x")
	write(t, filepath.Join(root, "nested/Chart.yaml"), targz.ChartYAML)
	write(t, filepath.Join(root, "nested/charts/inner.tgz"), "x")

	sources := newSources(t, source.Options{ArtifactRoot: root})
	for reason, paths := range map[string][]string{
		failure.ArtifactRefused: {
			"/etc/passwd", "../secret.tgz", "inside/../../secret.tgz", "a\x00.tgz", "absolute.tgz", "relative.tgz", "directory", "directory/Chart.yaml",
			"leaky", "loop.tgz", "cycle", "pipe.tgz", "piped",
		},
		failure.ArtifactInvalid:  {"chart.yaml", "empty", "ignore", "nested", "broken.tgz"},
		failure.ArtifactTooLarge: {"large.tgz"},
		failure.ArtifactNotFound: {"missing.tgz", "missing/missing.tgz", "chart.yaml/missing.tgz"},
	} {
		for _, path := range paths {
			t.Run(strings.ReplaceAll(path, "\x00", "NUL"), func(t *testing.T) {
				for range 2 { // the second time it is remembered
					err := get(t, sources, atPath(path))
					expectRefused(t, err, reason)
					if known := asError(t, err); known.Field != "chart.path" || known.Wait != (reason == failure.ArtifactNotFound) {
						t.Errorf("it is about %s, and to be waited for: %v", known.Field, known.Wait)
					}
					if strings.Contains(err.Error(), root) {
						t.Errorf("the error tells where the root is: %v", err)
					}
				}
			})
		}
	}
}

// slow is a clock by which all takes a second.
type slow struct{ *clocktesting.FakeClock }

func (s slow) Now() time.Time {
	s.Step(time.Second)
	return s.FakeClock.Now()
}

// A path takes a tenth of the time of one processor at most, however large it is.
func TestLargeTreesAreReadSeldom(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t)))
	write(t, filepath.Join(root, "demo/Chart.yaml"), targz.ChartYAML)
	clock := slow{clocktesting.NewFakeClock(time.Now())}
	sources := newSources(t, source.Options{ArtifactRoot: root, Clock: clock})
	for path, file := range map[string]string{"demo.tgz": "demo.tgz", "demo": "demo/Chart.yaml"} {
		digest := expectResolved(t, sources, atPath(path))
		write(t, filepath.Join(root, file), "x")
		must.Equal(t, digest, expectResolved(t, sources, atPath(path)), path)
		clock.Step(10 * time.Second)
		if got := expectResolved(t, sources, atPath(path)); got == digest {
			t.Errorf("%s wasn't read again", path)
		}
	}
}

func TestFilesThatChangedJustNowAreReadAgain(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "demo.tgz")
	write(t, file, string(targz.Chart(t)))
	info, err := os.Stat(file)
	must.Succeed(t, err)
	sources := newSources(t, source.Options{ArtifactRoot: root})
	digest := expectResolved(t, sources, atPath("demo.tgz"))
	// A second write within the same tick of the file system's clock.
	write(t, file, strings.Repeat("x", int(info.Size())))
	must.Succeed(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	if got := expectResolved(t, sources, atPath("demo.tgz")); got == digest {
		t.Error("the second write wasn't noticed")
	}
}

func TestContentThatChangesBetweenResolveAndFetch(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t)))
	sources := newSources(t, source.Options{ArtifactRoot: root})
	digest := expectResolved(t, sources, atPath("demo.tgz"))
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/evil"})))
	_, err := sources.Fetch(t.Context(), atPath("demo.tgz"), digest)
	expectRefused(t, err, failure.ArtifactChanged)
	if fetched := expectFetched(t, sources, atPath("demo.tgz")); len(fetched.Files) != 2 {
		t.Errorf("then it has %v", namesOf(fetched))
	}
}

func TestLimitsOfADirectory(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo/Chart.yaml"), strings.Repeat("x", 100))
	write(t, filepath.Join(root, "demo/templates/x.yaml"), strings.Repeat("x", 100))
	for name, test := range map[string]struct{ fits, refuses artifact.Limits }{
		"TotalBytes": {artifact.Limits{TotalBytes: 200}, artifact.Limits{TotalBytes: 199}},
		"FileBytes":  {artifact.Limits{FileBytes: 100}, artifact.Limits{FileBytes: 99}},
		"Entries":    {artifact.Limits{Entries: 3}, artifact.Limits{Entries: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			expectFetched(t, newSources(t, source.Options{ArtifactRoot: root, Limits: test.fits}), atPath("demo"))
			if _, err := newSources(t, source.Options{ArtifactRoot: root, Limits: test.refuses}).Resolve(t.Context(), atPath("demo")); err == nil {
				t.Error("beyond the limit it was accepted")
			}
		})
	}
}

func TestArtifactRootThatIsMissing(t *testing.T) {
	if _, err := source.New(source.Options{Opener: workers, ArtifactRoot: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("New accepted an artifact root that isn't there")
	}
}
