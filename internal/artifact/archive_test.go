// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/hostile"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// fileBytes is how large a file may be.
const fileBytes = 5 << 20

func TestHostileArchives(t *testing.T) {
	long.InCI(t)
	limits := artifact.Limits{}.WithDefaults()
	corpus := hostile.Archives()
	if len(corpus) < 60 {
		t.Errorf("the corpus has %d archives, want at least 60", len(corpus))
	}
	for _, name := range slices.Sorted(maps.Keys(corpus)) {
		t.Run(name, func(t *testing.T) {
			test := corpus[name]
			archive := artifact.Content{Archive: test.Make(t)}
			files, err := archive.Unpack(limits)
			if test.Reason == "" {
				if err != nil {
					t.Errorf("it was refused: %v", err)
				}
				return
			}
			refusal, ok := errors.AsType[*failure.Error](err)
			if !ok {
				t.Fatalf("it was accepted (%d files), or refused with no *Error: %v", len(files), err)
			}
			if refusal.Reason != test.Reason || !strings.Contains(err.Error(), test.Says) {
				t.Errorf("refused as %s: %v; want %s with %q", refusal.Reason, err, test.Reason, test.Says)
			}
			if refusal.Wait || len(err.Error()) > 400 || strings.ContainsFunc(err.Error(), unprintable) {
				t.Errorf("the error isn't fit for a condition: %q", err)
			}
			if len(archive.Archive) < 10<<10 {
				if _, again := archive.Unpack(limits); again == nil || again.Error() != err.Error() {
					t.Errorf("the error isn't the same the second time: %v, then %v", err, again)
				}
			}
		})
	}
}

// chartWith makes a chart's archive with these entries, only one of nothing else.
func chartWith(entries ...targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return targz.Chart(t, entries...) }
}

func only(entries ...targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return targz.Of(t, entries...) }
}

func TestHonestArchivesAreAccepted(t *testing.T) {
	limits := artifact.Limits{}.WithDefaults()
	chart := artifact.File{Name: "Chart.yaml", Data: []byte(targz.ChartYAML)}
	tests := map[string]struct {
		archive func(t testing.TB) []byte
		want    []artifact.File
	}{
		"files are sorted and lose the top-level directory": {
			chartWith(targz.Entry{Name: "demo/values.yaml", Data: "a: 1"}, targz.Entry{Name: "demo/templates/x.yaml", Data: "x"}),
			[]artifact.File{chart, {Name: "templates/x.yaml", Data: []byte("x")}, {Name: "values.yaml", Data: []byte("a: 1")}},
		},
		"directories have no content": {
			only(targz.Entry{Name: "demo/", Kind: tar.TypeDir}, targz.Entry{Name: "demo/templates/", Kind: tar.TypeDir}, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML}),
			[]artifact.File{chart},
		},
		"a byte order mark is taken off": {
			chartWith(targz.Entry{Name: "demo/values.yaml", Data: "\xef\xbb\xbfa: 1"}),
			[]artifact.File{chart, {Name: "values.yaml", Data: []byte("a: 1")}},
		},
		"names with dots, spaces and letters of all kinds": {
			chartWith(targz.Entry{Name: "demo/..a"}, targz.Entry{Name: "demo/.helmignore"}, targz.Entry{Name: "demo/größe 1.txt"}),
			[]artifact.File{{Name: "..a", Data: []byte{}}, {Name: ".helmignore", Data: []byte{}}, chart, {Name: "größe 1.txt", Data: []byte{}}},
		},
		"long names in PAX headers": {
			chartWith(targz.Entry{Name: "demo/" + strings.Repeat("n", 300), Data: "x"}),
			[]artifact.File{chart, {Name: strings.Repeat("n", 300), Data: []byte("x")}},
		},
		"the comment of git archive": {
			chartWith(targz.Entry{Kind: tar.TypeXGlobalHeader, PAX: map[string]string{"comment": "0123456789abcdef"}}),
			[]artifact.File{chart},
		},
		"padding to a full record of tar": {
			func(t testing.TB) []byte {
				return targz.Gzip(t, bytes.NewReader(targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML})), bytes.NewReader(make([]byte, 10<<10)))
			},
			[]artifact.File{chart},
		},
		"gzip of several members": {
			func(t testing.TB) []byte {
				packed := targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML})
				return append(targz.Gzip(t, bytes.NewReader(packed[:700])), targz.Gzip(t, bytes.NewReader(packed[700:]))...)
			},
			[]artifact.File{chart},
		},
		"bytes after the end": {
			func(t testing.TB) []byte {
				return append(targz.Chart(t), "as Helm, nobody reads them"...)
			},
			[]artifact.File{chart},
		},
		"large headers": {
			chartWith(targz.Entry{Name: "demo/x", PAX: map[string]string{"CHANDLER.x": strings.Repeat("p", 64<<10)}}),
			[]artifact.File{chart, {Name: "x", Data: []byte{}}},
		},
		"a file of exactly the limit": {
			chartWith(targz.Entry{Name: "demo/x", Data: strings.Repeat("x", fileBytes)}),
			[]artifact.File{chart, {Name: "x", Data: bytes.Repeat([]byte("x"), fileBytes)}},
		},
		"archives in directories that are called charts, but aren't Helm's": {
			chartWith(targz.Entry{Name: "demo/charts/_off/charts/a.tgz", Data: "x"}, targz.Entry{Name: "demo/charts/a/files/charts/a.tgz", Data: "x"},
				targz.Entry{Name: "demo/charts/charts/a.tgz", Data: "x"}, targz.Entry{Name: "demo/files/charts/a.tgz", Data: "x"}),
			[]artifact.File{chart, {Name: "charts/_off/charts/a.tgz", Data: []byte("x")}, {Name: "charts/a/files/charts/a.tgz", Data: []byte("x")},
				{Name: "charts/charts/a.tgz", Data: []byte("x")}, {Name: "files/charts/a.tgz", Data: []byte("x")}},
		},
		"files in charts that Helm doesn't unpack": {
			chartWith(targz.Entry{Name: "demo/charts/_off.tgz", Data: "x"}, targz.Entry{Name: "demo/charts/README", Data: "x"}, targz.Entry{Name: "demo/files/a.tgz", Data: "x"}),
			[]artifact.File{chart, {Name: "charts/README", Data: []byte("x")}, {Name: "charts/_off.tgz", Data: []byte("x")}, {Name: "files/a.tgz", Data: []byte("x")}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := artifact.Content{Archive: test.archive(t)}.Unpack(limits)
			if err != nil {
				t.Fatalf("it was refused: %v", err)
			}
			if !reflect.DeepEqual(got, test.want) { // cmp.Diff takes seconds to find that megabytes are equal
				t.Errorf("files (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

func TestNestedArchivesStayAsTheyAre(t *testing.T) {
	inner := targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: "a: 1"})
	got, err := artifact.Content{Archive: hostile.Nest(t, inner, 1)}.Unpack(artifact.Limits{}.WithDefaults())
	must.Succeed(t, err)
	if len(got) != 2 || got[1].Name != "charts/inner.tgz" || !bytes.Equal(got[1].Data, inner) {
		t.Errorf("the nested archive isn't in the result as it was: %d files", len(got))
	}
	if _, err := (artifact.Content{Archive: hostile.Nest(t, inner, artifact.Nesting)}).Unpack(artifact.Limits{}.WithDefaults()); err != nil {
		t.Errorf("nesting of the depth that is allowed: %v", err)
	}
}

func TestLimitsAreExact(t *testing.T) {
	archive := artifact.Content{Archive: targz.Chart(t, targz.Entry{Name: "demo/x", Data: strings.Repeat("x", 1000)})}
	tarBytes := int64(len(targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML}, targz.Entry{Name: "demo/x", Data: strings.Repeat("x", 1000)})))
	tests := map[string]struct {
		fits, refuses artifact.Limits
	}{
		"ArchiveBytes": {artifact.Limits{ArchiveBytes: int64(len(archive.Archive))}, artifact.Limits{ArchiveBytes: int64(len(archive.Archive)) - 1}},
		"TotalBytes":   {artifact.Limits{TotalBytes: tarBytes}, artifact.Limits{TotalBytes: tarBytes - 1}},
		"FileBytes":    {artifact.Limits{FileBytes: 1000}, artifact.Limits{FileBytes: 999}},
		"Entries":      {artifact.Limits{Entries: 2}, artifact.Limits{Entries: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := archive.Unpack(test.fits.WithDefaults()); err != nil {
				t.Errorf("at the limit it was refused: %v", err)
			}
			if _, err := archive.Unpack(test.refuses.WithDefaults()); err == nil {
				t.Error("beyond the limit it was accepted")
			}
		})
	}
}

// TestDirectoryAndItsArchivesAreOne counts what archives in a chart's directory expand to
// together with its files.
func TestDirectoryAndItsArchivesAreOne(t *testing.T) {
	inner := targz.Chart(t)
	expanded := int64(len(targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML})))
	directory := artifact.Content{Files: []artifact.File{
		{Name: "Chart.yaml", Data: []byte(targz.ChartYAML)}, {Name: "charts/demo.tgz", Data: inner}, {Name: "x", Data: make([]byte, 5000)},
	}}
	limits := artifact.Limits{TotalBytes: directory.Bytes() + expanded}.WithDefaults()
	if _, err := directory.Unpack(limits); err != nil {
		t.Errorf("at the limit it was refused: %v", err)
	}
	limits.TotalBytes = directory.Bytes() + 1
	if _, err := directory.Unpack(limits); err == nil {
		t.Error("beyond the limit it was accepted")
	}
}

// unprintable reports whether a rune may hide or turn what stands around it.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
