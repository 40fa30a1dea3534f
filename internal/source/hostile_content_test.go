// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Hostile content takes the whole way: it is fetched from a server, kept on the disk, read
// from there, unpacked, and looked into. Whatever it is, and wherever in an artifact, that
// costs no more than it may, and writes nothing but the archives to the cache.
func TestHostileContent(t *testing.T) {
	place := newQuarantine(t)
	charts := hostile.Archives()
	maps.Copy(charts, hostile.Charts())
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		test := charts[name]
		archive := test.Make(t)
		t.Run("chart: "+name, func(t *testing.T) { place.expect(t, test, archive, place.fetchChart) })
		anyhow := hostile.Archive{} // it depends on where in a bundle it is what it is refused for, if at all
		t.Run("bundle: "+name, func(t *testing.T) { place.expect(t, anyhow, archive, place.fetchBundle("demo")) })
		packed := targz.Of(t, targz.Entry{Name: "x.tgz", Data: string(archive)})
		t.Run("in a bundle: "+name, func(t *testing.T) { place.expect(t, anyhow, packed, place.fetchBundle("x.tgz")) })
		t.Run("into an archive in a bundle: "+name, func(t *testing.T) { place.expect(t, anyhow, packed, place.fetchBundle("x.tgz/demo")) })
	}
	bundles := hostile.Bundles()
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		test := bundles[name]
		archive := test.Make(t)
		t.Run("charts in a bundle: "+name, func(t *testing.T) { place.expect(t, test.Archive, archive, place.fetchBundle(test.Paths...)) })
	}
	t.Logf("the most: %.0f ms, %.1f MiB", place.most.Work.Seconds()*1000, float64(place.most.Held)/(1<<20))
}

// quarantine is a process's surroundings with nothing in them: what is written anywhere is seen.
type quarantine struct {
	all     string // has the directories of all else
	cache   string
	url     string
	serves  []byte
	most    cost.Cost
	options Options
}

func newQuarantine(t *testing.T) *quarantine {
	q := &quarantine{all: t.TempDir()}
	server, credentials := serveAt(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(q.serves) })
	q.url = server.URL + "/x.tgz"
	q.cache = filepath.Join(q.all, "cache")
	q.options = Options{CredentialsDir: credentials}
	for variable, name := range map[string]string{"TMPDIR": "tmp", "HOME": "home", "XDG_CACHE_HOME": "home/cache", "XDG_CONFIG_HOME": "home/config", "XDG_DATA_HOME": "home/data"} {
		directory := filepath.Join(q.all, filepath.FromSlash(name))
		if err := os.MkdirAll(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variable, directory)
	}
	work := filepath.Join(q.all, "some", "where", "deep")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	return q
}

// steps are measured one by one: between two of them, what the first needed is given back.
type steps func(do func() error) error

// expect has the archive fetched twice, from the server and from the cache, by sources that
// know nothing.
func (q *quarantine) expect(t *testing.T, test hostile.Archive, archive []byte, fetch func(t *testing.T, sources *Sources, digest string, measured steps) error) {
	q.serves = archive
	digest := artifact.Content{Archive: archive}.Digest()
	options := q.options
	options.Store = store.New(store.Options{Directory: q.cache, ArchiveBytes: artifact.DefaultArchiveBytes})
	var said string
	for _, when := range []string{"from the server", "from the cache"} {
		sources, _ := remoteSources(t, options)
		err := fetch(t, sources, digest, func(do func() error) (err error) {
			took := cost.OfAll(func() { err = do() })
			took.Expect(t, hostile.Time, hostile.Memory)
			q.most.Work, q.most.Held = max(q.most.Work, took.Work), max(q.most.Held, took.Held)
			t.Logf("%s: %8d bytes in, %6.1f ms, %6.2f MiB held: %v", when, len(archive), float64(took.Work.Microseconds())/1000, float64(took.Held)/(1<<20), err)
			return err
		})
		q.expectNothingElse(t)
		if err == nil {
			if test.Reason != "" {
				t.Errorf("%s: it was accepted", when)
			}
			continue
		}
		if known := asError(t, err); test.Reason != "" && (known.Reason != test.Reason || !strings.Contains(err.Error(), test.Says)) {
			t.Errorf("%s: refused as %s: %v; want %s with %q", when, known.Reason, err, test.Reason, test.Says)
		}
		if len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("the error isn't fit for a condition: %q", err)
		}
		if said != "" && said != err.Error() {
			t.Errorf("%s it says %q, before %q", when, err, said)
		}
		said = err.Error()
	}
}

func (q *quarantine) fetchChart(t *testing.T, sources *Sources, digest string, measured steps) error {
	return measured(func() error {
		_, err := sources.Fetch(t.Context(), atAddress(q.url, digest), digest)
		return err
	})
}

// fetchBundle has charts of a bundle fetched as stacks and their clusters do it: first all
// digests, then each of the charts.
func (q *quarantine) fetchBundle(paths ...string) func(*testing.T, *Sources, string, steps) error {
	return func(t *testing.T, sources *Sources, digest string, measured steps) error {
		from := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{HTTP: atAddress(q.url, digest).Chart.HTTP}}
		var digests []string
		err := measured(func() error {
			bundle, err := sources.OpenBundle(t.Context(), "team-a", from)
			for _, path := range paths {
				if err == nil {
					digest, err = bundle.ChartDigest(path)
				}
				digests = append(digests, digest)
			}
			return err
		})
		for i, path := range paths {
			if err == nil {
				err = measured(func() error {
					_, err := sources.Fetch(t.Context(), atPath(path).In(from), digests[i])
					return err
				})
			}
		}
		return err
	}
}

// storeWrites has the names of what the store writes.
var storeWrites = regexp.MustCompile(`^cache(/v1(/[0-9a-f]{64}([.](grants|pin))?)?)?$`)

// expectNothingElse looks for what was written anywhere but into the cache.
func (q *quarantine) expectNothingElse(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(q.all, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(q.all, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		ours := entry.IsDir() && slices.Contains([]string{".", "tmp", "home", "home/cache", "home/config", "home/data", "some", "some/where", "some/where/deep"}, name)
		if !ours && !storeWrites.MatchString(name) {
			t.Errorf("there is %s", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
