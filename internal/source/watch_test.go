// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/tree"
	"github.com/cluster-chandler/chandler/test/targz"
)

// startWatch watches until the test ends, and returns the paths that it is told of.
func startWatch(t *testing.T, sources *Sources) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan string, 100), make(chan error, 1)
	go func() { ended <- sources.Watch(ctx, func(path string) { changes <- path }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
	return changes
}

// expectChange expects to be told of the path, soon.
func expectChange(t *testing.T, changes <-chan string, path string) {
	t.Helper()
	started := time.Now()
	select {
	case got := <-changes:
		if got != path {
			t.Errorf("told of %q, want %q", got, path)
		}
		t.Logf("told of %q after %s", got, time.Since(started).Round(time.Millisecond))
	case <-time.After(20 * time.Second): // generous: a busy machine
		t.Fatalf("not told of %q", path)
	}
}

// expectQuiet expects to be told nothing during two rounds of gathering.
func expectQuiet(t *testing.T, changes <-chan string) {
	t.Helper()
	select {
	case got := <-changes:
		t.Errorf("told of %q, which didn't change", got)
	case <-time.After(2 * tree.Gathering):
	}
}

func TestWatch(t *testing.T) {
	tests := map[string]struct {
		path   string
		change func(t *testing.T, root string)
	}{
		"an archive is overwritten": {"charts/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "charts/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
		}},
		"an archive is replaced by rename": {"charts/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "tmp"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
			rename(t, filepath.Join(root, "tmp"), filepath.Join(root, "charts/demo.tgz"))
		}},
		"an archive is removed": {"charts/demo.tgz", func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "charts/demo.tgz")); err != nil {
				t.Fatal(err)
			}
		}},
		"a missing archive comes, with its directories": {"new/dir/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "new/dir/demo.tgz"), string(targz.Chart(t)))
		}},
		"a directory of charts is replaced": {"charts/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "next/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
			rename(t, filepath.Join(root, "charts"), filepath.Join(root, "previous"))
			rename(t, filepath.Join(root, "next"), filepath.Join(root, "charts"))
		}},
		"a file deep in a chart's directory changes": {"dir", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "dir/templates/deep/x.yaml"), "new content")
		}},
		"a file is added to a chart's directory": {"dir", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "dir/templates/new/x.yaml"), "x")
		}},
		"a link is turned to another archive": {"linked.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "other/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
			link(t, "other/demo.tgz", filepath.Join(root, "tmp"))
			rename(t, filepath.Join(root, "tmp"), filepath.Join(root, "linked.tgz"))
		}},
		"what a link leads to changes": {"linked.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "charts/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
		}},
		"a volume of a ConfigMap is updated": {"volume/demo.tgz", func(t *testing.T, root string) {
			volume(t, filepath.Join(root, "volume"), "2", map[string]string{"demo.tgz": string(targz.Chart(t, targz.Entry{Name: "demo/new"}))})
			if err := os.RemoveAll(filepath.Join(root, "volume/..v1")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, filepath.Join(root, "charts/demo.tgz"), string(targz.Chart(t)))
			write(t, filepath.Join(root, "dir/Chart.yaml"), targz.ChartYAML)
			write(t, filepath.Join(root, "dir/templates/deep/x.yaml"), "x")
			link(t, "charts/demo.tgz", filepath.Join(root, "linked.tgz"))
			volume(t, filepath.Join(root, "volume"), "1", map[string]string{"demo.tgz": string(targz.Chart(t))})
			sources := newSources(t, Options{ArtifactRoot: root})

			changes := startWatch(t, sources)
			before, _ := sources.Resolve(t.Context(), atPath(test.path)) // asked for while the watch runs
			expectQuiet(t, changes)
			test.change(t, root)
			expectChange(t, changes, test.path)
			if after, _ := sources.Resolve(t.Context(), atPath(test.path)); after == before {
				t.Error("it resolves to what it was before")
			}
			expectQuiet(t, changes)

			// Unrelated changes tell nothing; the next change tells again.
			write(t, filepath.Join(root, "charts/unrelated.tgz"), "x")
			expectQuiet(t, changes)
			if err := os.RemoveAll(filepath.Join(root, "volume")); err != nil {
				t.Fatal(err)
			}
			for _, directory := range []string{"charts", "dir", "new"} {
				if err := os.RemoveAll(filepath.Join(root, directory)); err != nil {
					t.Fatal(err)
				}
			}
			if test.path != "linked.tgz" && name != "an archive is removed" {
				expectChange(t, changes, test.path)
			}
		})
	}
}

func TestWatchTellsOfChangesBeforeItStarted(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t)))
	sources := newSources(t, Options{ArtifactRoot: root})
	expectResolved(t, sources, atPath("demo.tgz"))
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
	expectChange(t, startWatch(t, sources), "demo.tgz")
}

func TestWatchOfARootThatIsALink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/demo.tgz"), string(targz.Chart(t)))
	write(t, filepath.Join(dir, "b/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
	link(t, "a", filepath.Join(dir, "current"))
	sources := newSources(t, Options{ArtifactRoot: filepath.Join(dir, "current")})
	changes := startWatch(t, sources)
	expectResolved(t, sources, atPath("demo.tgz"))
	expectQuiet(t, changes)
	link(t, "b", filepath.Join(dir, "next"))
	rename(t, filepath.Join(dir, "next"), filepath.Join(dir, "current"))
	expectChange(t, changes, "demo.tgz")
	expectQuiet(t, changes)
	write(t, filepath.Join(dir, "b/demo.tgz"), string(targz.Chart(t)))
	expectChange(t, changes, "demo.tgz")
}

func TestWatchWithoutAnArtifactRoot(t *testing.T) {
	startWatch(t, newSources(t, Options{}))
}
