// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"cmp"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Hostile content takes the whole way: it is fetched from a server, kept on the disk, read
// from there, unpacked, and looked into. Whatever it is, and wherever in an artifact, it is
// told in the same way each time, and nothing is written but the archives to the cache.
func TestHostileContent(t *testing.T) {
	long.Test(t)
	q := newQuarantine(t)
	q.workers = render.New(render.Options{Timeout: 5 * time.Second}) // of which some content takes all
	defer q.workers.Close()
	archives, charts := hostile.Archives(), hostile.Charts()
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		test := archives[name]
		archive := test.Make(t)
		t.Run("chart: "+name, func(t *testing.T) { q.expect(t, archive, q.chart, test.Reason) })
		// It depends on where in a bundle it is what it is refused for, if at all.
		packed := targz.Of(t, targz.Entry{Name: "x.tgz", Data: string(archive)})
		t.Run("in a bundle: "+name, func(t *testing.T) { q.expect(t, packed, q.bundle("x.tgz", "x.tgz/demo"), anyhow) })
	}
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		test := charts[name]
		archive := test.Make(t)
		t.Run("chart: "+name, func(t *testing.T) { q.expect(t, archive, q.chart, test.Reason) })
		t.Run("bundle: "+name, func(t *testing.T) { q.expect(t, archive, q.bundle("demo"), anyhow) })
	}
	bundles := hostile.Bundles()
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		test := bundles[name]
		archive := test.Make(t)
		t.Run("charts in a bundle: "+name, func(t *testing.T) { q.expect(t, archive, q.bundle(test.Paths...), cmp.Or(test.Reason, anyhow)) })
	}
}

// anyhow stands for any reason, or none.
const anyhow = "anyhow"

// quarantine is a process's surroundings with nothing in them: what is written anywhere is seen.
type quarantine struct {
	all    string // has the directories of all else
	cache  string
	url    string
	serves []byte

	workers *render.Renderer
}

func newQuarantine(t *testing.T) *quarantine {
	t.Helper()
	q := &quarantine{all: t.TempDir()}
	server := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(q.serves) })
	q.url, q.cache = server.URL+"/x.tgz", filepath.Join(q.all, "cache")
	for variable, name := range map[string]string{"TMPDIR": "tmp", "HOME": "home", "XDG_CACHE_HOME": "home/cache", "XDG_CONFIG_HOME": "home/config", "XDG_DATA_HOME": "home/data"} {
		directory := filepath.Join(q.all, filepath.FromSlash(name))
		must.Succeed(t, os.MkdirAll(directory, 0o700))
		t.Setenv(variable, directory)
	}
	work := filepath.Join(q.all, "some", "where", "deep")
	must.Succeed(t, os.MkdirAll(work, 0o700))
	t.Chdir(work)
	return q
}

// expect has the archive fetched twice, from the server and from the cache, by sources that
// know nothing.
func (q *quarantine) expect(t *testing.T, archive []byte, fetch func(t *testing.T, sources *source.Sources, digest string) error, reason string) {
	t.Helper()
	q.serves = archive
	var said string
	for _, when := range []string{"from the server", "from the cache"} {
		sources, _ := remoteSources(t, source.Options{Store: storeAt(q.cache), Opener: q.workers})
		err := fetch(t, sources, digestOf(archive))
		q.expectNothingElse(t)
		if reason != anyhow {
			expectRefused(t, err, reason)
		}
		if err == nil {
			continue
		}
		_ = asError(t, err)
		if said != "" && said != err.Error() {
			t.Errorf("%s it says %q, before %q", when, err, said)
		}
		said = err.Error()
	}
}

func (q *quarantine) chart(t *testing.T, sources *source.Sources, digest string) error {
	t.Helper()
	_, err := sources.Fetch(t.Context(), atAddress(q.url, digest), digest)
	return err
}

// bundle has charts of a bundle fetched as stacks and their clusters do it: first all
// digests, then each of the charts.
func (q *quarantine) bundle(paths ...string) func(*testing.T, *source.Sources, string) error {
	return func(t *testing.T, sources *source.Sources, digest string) error {
		t.Helper()
		from := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{HTTP: atAddress(q.url, digest).Chart.HTTP}}
		bundle, err := sources.OpenBundle(t.Context(), "team-a", from)
		digests := make([]string, len(paths))
		for i, path := range paths {
			if err == nil {
				digests[i], err = bundle.ChartDigest(path)
			}
		}
		for i, path := range paths {
			if err == nil {
				_, err = sources.Fetch(t.Context(), atPath(path).In(from), digests[i])
			}
		}
		return err
	}
}

var (
	// storeWrites has the names of what the store writes.
	storeWrites = regexp.MustCompile(`^cache(/v[0-9]+(/[0-9a-f]{64})?)?$`)
	surrounding = []string{".", "tmp", "home", "home/cache", "home/config", "home/data", "some", "some/where", "some/where/deep"}
)

// expectNothingElse looks for what was written anywhere but into the cache.
func (q *quarantine) expectNothingElse(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(q.all, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(q.all, path)
		if ours := entry.IsDir() && slices.Contains(surrounding, filepath.ToSlash(name)); !ours && !storeWrites.MatchString(filepath.ToSlash(name)) {
			t.Errorf("there is %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
