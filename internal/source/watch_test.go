// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/local"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// watching is a watch of an artifact root, whose looks happen when the test wants.
type watching struct {
	clock *clocktesting.FakeClock
	told  []string
}

// startWatch watches until the test ends.
func startWatch(t *testing.T, options source.Options) (*source.Sources, *watching) {
	t.Helper()
	w := &watching{clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour))} // all files are old
	options.Clock = w.clock
	sources := newSources(t, options)
	w.start(t, sources)
	return sources, w
}

func (w *watching) start(t *testing.T, sources *source.Sources) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sources.Watch(ctx, func(path string) { w.told = append(w.told, path) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
}

// expect has the watch look, and expects it to tell of these paths.
func (w *watching) expect(t *testing.T, paths ...string) {
	t.Helper()
	for range 2 { // the first of both looks may have begun before the change
		w.waits()
		w.clock.Step(local.LookEvery)
	}
	w.waits()
	must.Equal(t, paths, w.told, "told of")
	w.told = nil
}

// waits waits until the watch does, for its next look.
func (w *watching) waits() {
	for !w.clock.HasWaiters() {
		runtime.Gosched()
	}
}

func TestWatch(t *testing.T) {
	other := string(targz.Chart(t, targz.Entry{Name: "demo/new"}))
	remove := func(t *testing.T, path string) {
		t.Helper()
		must.Succeed(t, os.RemoveAll(path))
	}
	for name, test := range map[string]struct {
		path   string
		change func(t *testing.T, root string)
	}{
		"an archive is overwritten": {"charts/demo.tgz", func(t *testing.T, root string) { write(t, filepath.Join(root, "charts/demo.tgz"), other) }},
		"an archive is replaced by rename": {"charts/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "tmp"), other)
			rename(t, filepath.Join(root, "tmp"), filepath.Join(root, "charts/demo.tgz"))
		}},
		"an archive is removed": {"charts/demo.tgz", func(t *testing.T, root string) { remove(t, filepath.Join(root, "charts/demo.tgz")) }},
		"a missing archive comes, with its directories": {"new/dir/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "new/dir/demo.tgz"), other)
		}},
		"a directory of charts is replaced": {"charts/demo.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "next/demo.tgz"), other)
			rename(t, filepath.Join(root, "charts"), filepath.Join(root, "previous"))
			rename(t, filepath.Join(root, "next"), filepath.Join(root, "charts"))
		}},
		"a file deep in a chart's directory changes": {"dir", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "dir/templates/deep/x.yaml"), "new content")
		}},
		"a file is added to a chart's directory": {"dir", func(t *testing.T, root string) { write(t, filepath.Join(root, "dir/templates/new/x.yaml"), "x") }},
		"a link is turned to another archive": {"linked.tgz", func(t *testing.T, root string) {
			write(t, filepath.Join(root, "other/demo.tgz"), other)
			link(t, "other/demo.tgz", filepath.Join(root, "tmp"))
			rename(t, filepath.Join(root, "tmp"), filepath.Join(root, "linked.tgz"))
		}},
		"what a link leads to changes": {"linked.tgz", func(t *testing.T, root string) { write(t, filepath.Join(root, "charts/demo.tgz"), other) }},
		"a volume of a ConfigMap is updated": {"volume/demo.tgz", func(t *testing.T, root string) {
			volume(t, filepath.Join(root, "volume"), "2", map[string]string{"demo.tgz": other})
			remove(t, filepath.Join(root, "volume/..v1"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "charts/demo.tgz"), string(targz.Chart(t)))
			write(t, filepath.Join(root, "dir/Chart.yaml"), targz.ChartYAML)
			write(t, filepath.Join(root, "dir/templates/deep/x.yaml"), "x")
			link(t, "charts/demo.tgz", filepath.Join(root, "linked.tgz"))
			volume(t, filepath.Join(root, "volume"), "1", map[string]string{"demo.tgz": string(targz.Chart(t))})
			sources, w := startWatch(t, source.Options{ArtifactRoot: root})

			before, _ := sources.Resolve(t.Context(), atPath(test.path)) // asked for while the watch runs
			w.expect(t)
			test.change(t, root)
			w.expect(t, test.path)
			if after, _ := sources.Resolve(t.Context(), atPath(test.path)); after == before {
				t.Error("it resolves to what it was before")
			}
			w.expect(t)

			// Unrelated changes tell nothing; the next change tells again.
			write(t, filepath.Join(root, "charts/unrelated.tgz"), "x")
			w.expect(t)
			for _, directory := range []string{"charts", "dir", "new", "volume"} {
				remove(t, filepath.Join(root, directory))
			}
			if name == "an archive is removed" || name == "a link is turned to another archive" {
				w.expect(t)
			} else {
				w.expect(t, test.path)
			}
		})
	}
}

func TestWatchTellsOfChangesBeforeItStarted(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t)))
	w := &watching{clock: clocktesting.NewFakeClock(time.Now())}
	sources := newSources(t, source.Options{ArtifactRoot: root, Clock: w.clock})
	expectResolved(t, sources, atPath("demo.tgz"))
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
	w.start(t, sources)
	w.expect(t, "demo.tgz")
}

func TestWatchOfARootThatIsALink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/demo.tgz"), string(targz.Chart(t)))
	write(t, filepath.Join(dir, "b/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/new"})))
	link(t, "a", filepath.Join(dir, "current"))
	sources, w := startWatch(t, source.Options{ArtifactRoot: filepath.Join(dir, "current")})
	expectResolved(t, sources, atPath("demo.tgz"))
	w.expect(t)
	link(t, "b", filepath.Join(dir, "next"))
	rename(t, filepath.Join(dir, "next"), filepath.Join(dir, "current"))
	w.expect(t, "demo.tgz")
	write(t, filepath.Join(dir, "b/demo.tgz"), string(targz.Chart(t)))
	w.expect(t, "demo.tgz")
}

func TestWatchWithoutAnArtifactRoot(t *testing.T) {
	(&watching{}).start(t, newSources(t, source.Options{}))
}
