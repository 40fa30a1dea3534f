// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"
)

func TestRead(t *testing.T) {
	one := map[string][]Version{"demo": {{Version: "1.0.0", URL: "demo.tgz", Digest: "abc"}}}
	tests := map[string]struct {
		index string
		want  map[string][]Version
		err   error
	}{
		"as Helm writes it":         {"apiVersion: v1\nentries:\n  demo:\n  - apiVersion: v2\n    description: |\n      version: 6.6.6\n      urls:\n    digest: abc\n    urls:\n    - demo.tgz\n    - second.tgz\n    version: 1.0.0\ngenerated: \"x\"\n", one, nil},
		"lists further in":          {"---\nentries:\n    demo:\n        - urls:\n            - demo.tgz\n          version: 1.0.0\n          digest: abc\n", one, nil},
		"quoted keys":               {"\"entries\":\n  'demo':\n  - \"version\": '1.0.0'\n    \"urls\": [\"demo.tgz\"]\n    digest: \"abc\"\n", one, nil},
		"items in flow style":       {"entries:\n  demo:\n  - {version: 1.0.0, digest: abc,\n     urls: [demo.tgz]}\n", one, nil},
		"dash on a line of its own": {"entries:\n  demo:\n  -\n    version: 1.0.0\n    urls:\n      - demo.tgz\n    digest: abc\n", one, nil},
		"line ends of Windows, comments, a byte order mark": {"\ufeff# x\r\nentries:\r\n\r\n  # y\r\n  demo:\r\n  - version: 1.0.0\r\n    urls:\r\n    - demo.tgz\r\n    digest: abc\r\n", one, nil},
		"wrapped text": {"entries:\n  demo:\n  - description: one\n      version: 6.6.6\n      two\n    version: 1.0.0\n    urls: [demo.tgz]\n    digest: abc\n", one, nil},
		"JSON":         {`{"apiVersion":"v1","other":{"entries":[1]},"entries":{"demo":[{"version":"1.0.0","urls":["demo.tgz"],"digest":"abc","x":{}}],"none":null}}`, one, nil},
		"several charts, of which some are empty": {"entries:\n  a: []\n  b:\n  - version: 2.10\n    urls: [b]\n  - version: broken\n    urls: {}\n  - urls: [no-version]\n  - version: no-urls\n  c:\n  demo: null\n",
			map[string][]Version{"b": {{Version: "2.10", URL: "b"}}}, nil},
		"empty":                  {"apiVersion: v1\nentries: {}\n", map[string][]Version{}, nil},
		"nothing":                {"", nil, ErrNoIndex},
		"a web page":             {"<!DOCTYPE html>\n<html></html>\n", nil, ErrNoIndex},
		"entries twice":          {"entries: {}\nentries: {}\n", nil, ErrNoIndex},
		"entries in flow style":  {"entries: {demo: []}\n", nil, ErrNoIndex},
		"a chart that's no list": {"entries:\n  demo:\n    version: 1.0.0\n", nil, ErrNoIndex},
		"an alias":               {"x: &a [demo.tgz]\nentries:\n  demo:\n  - version: 1.0.0\n    urls: *a\n", map[string][]Version{}, nil},
		"JSON that ends":         {`{"entries":{"demo":[{"version":"1.0.0"`, nil, ErrNoIndex},
		"JSON without entries":   {`{}`, nil, ErrNoIndex},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(test.index), Limits{})
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && !reflect.DeepEqual(got.charts, test.want) {
				t.Errorf("got %v, want %v", got.charts, test.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	index, err := Read(strings.NewReader("entries:\n  demo:\n  - {version: v1.0.0, urls: [a]}\n  - {version: 1.0.0, urls: [b]}\n  - {version: v2.0.0, urls: [c]}\n  - {version: 2.0.0+x, urls: [d]}\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for version, url := range map[string]string{"1.0.0": "b", "v1.0.0": "a", "2.0.0": "c", "v2.0.0+x": "d", "3.0.0": "", "1": ""} {
		if got, found := index.Find("demo", version); got.URL != url || found != (url != "") {
			t.Errorf("%s is at %q", version, got.URL)
		}
	}
}

// An index that Helm writes says the same to Helm and to us.
func TestSameAsHelm(t *testing.T) {
	written := repo.NewIndexFile()
	for i := range 50 {
		metadata := &chart.Metadata{
			APIVersion: "v2", Name: fmt.Sprintf("chart-%d", i%7), Version: fmt.Sprintf("1.%d.0-rc.1", i),
			Description: strings.Repeat("long: text - with: things\n\n# in it\n ", i), Keywords: []string{"urls", "version: 2", "- x"},
			Annotations: map[string]string{"digest": "no", "urls": "- no\n- no", "x": "\ttab\n  entries:\n  - version: 7"},
		}
		if err := written.MustAdd(metadata, fmt.Sprintf("c-%d.tgz", i), "https://example.org/a b", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, write := range map[string]func(string, os.FileMode) error{"index.yaml": written.WriteFile, "index.json": written.WriteJSONFile} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := write(path, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs, err := repo.LoadIndexFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			ours, err := Read(file, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if len(ours.charts) != len(theirs.Entries) {
				t.Errorf("%d charts, want %d", len(ours.charts), len(theirs.Entries))
			}
			for chart, versions := range theirs.Entries {
				for _, want := range versions {
					got, found := ours.Find(chart, want.Version)
					if !found || got.URL != want.URLs[0] || got.Digest != want.Digest {
						t.Errorf("%s %s: got %v", chart, want.Version, got)
					}
				}
			}
		})
	}
}

// repeated yields a text over and over, for as many bytes as are asked of it.
type repeated struct {
	start string
	text  string
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.start != "" {
		n := copy(p, r.start)
		r.start = r.start[n:]
		return n, nil
	}
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestHostileIndexes(t *testing.T) {
	for name, in := range map[string]*repeated{
		"a line without an end":    {text: "x"},
		"nested lists":             {text: "["},
		"nested JSON":              {start: "{\"entries\":", text: "["},
		"skipped JSON":             {start: "{\"x\":[", text: "1,"},
		"empty JSON versions":      {start: "{\"entries\":{\"a\":[", text: "{},"},
		"empty versions":           {start: "entries:\n  a:\n", text: "  -\n"},
		"tiny versions":            {start: "entries:\n  a:\n", text: "  - {version: 1.0.0, urls: [a]}\n"},
		"a version without an end": {start: "entries:\n  a:\n  - urls:\n", text: "    - x\n"},
		"charts without versions":  {start: "entries:\n", text: "  a:\n"},
		"aliases":                  {start: "entries:\n  a:\n", text: "  - {version: &a [x,x,x,x], urls: [*a,*a,*a,*a,*a,*a]}\n"},
		"comments":                 {text: "# x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read(in, Limits{Bytes: maxJSON})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it was accepted")
			}
			if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
		})
	}
}

func TestLimitsLetWhatFitsPass(t *testing.T) {
	const index = "entries:\n  demo:\n  - {version: 1.0.0, urls: [a]}\n"
	if _, err := Read(strings.NewReader(index), Limits{Bytes: int64(len(index)), Versions: 1}); err != nil {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader(index), Limits{Bytes: int64(len(index)) - 1}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	broken := errors.New("the connection broke")
	if _, err := Read(io.MultiReader(strings.NewReader(index), readerFunc(func([]byte) (int, error) { return 0, broken })), Limits{}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzRead looks for panics, for versions that can't be found, and for limits that aren't kept.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nentries:\n  demo:\n  - version: 1.0.0\n    urls:\n    - demo.tgz\n    digest: abc\n",
		"entries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz]}\n",
		`{"entries":{"demo":[{"version":"1.0.0","urls":["demo.tgz"]}]}}`,
		"entries: {}\n", "\ufeff---\n", "entries:\n- x\n", "entries:\n  ? a\n  : b\n", "a: |\n  entries:\n",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Bytes: 4 << 10, Kept: 2 << 10, Versions: 20, VersionBytes: 256}
	f.Fuzz(func(t *testing.T, data []byte) {
		index, err := Read(bytes.NewReader(data), limits)
		if err != nil {
			if !errors.Is(err, ErrNoIndex) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		if int64(len(data)) > limits.Bytes || index.Size() > limits.Kept {
			t.Errorf("%d bytes were accepted, %d kept", len(data), index.Size())
		}
		count := 0
		for chart, versions := range index.charts {
			count += len(versions)
			for _, version := range versions {
				if _, found := index.Find(chart, version.Version); !found {
					t.Errorf("%s %s isn't found", chart, version.Version)
				}
			}
		}
		if count > limits.Versions {
			t.Errorf("%d versions", count)
		}
	})
}
