// SPDX-License-Identifier: Apache-2.0

package opener_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/chartfiles"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// expectRefused expects an error with that reason. Without a reason it expects none.
func expectRefused(t testing.TB, err error, reason string) {
	t.Helper()
	failed, refused := errors.AsType[*failure.Error](err)
	if (err != nil) != (reason != "") || refused && failed.Reason != reason || err != nil && !refused {
		t.Errorf("got %v, want %q", err, reason)
	}
}

func TestUnpackedChartsSayWhatTheyAre(t *testing.T) {
	for name, test := range map[string]struct{ metadata, name, version string }{
		"a chart":       {targz.ChartYAML, "demo", "1.0.0"},
		"a byte mark":   {"\xef\xbb\xbf" + targz.ChartYAML, "demo", "1.0.0"},
		"no YAML":       {"\tx", "", ""},
		"other types":   {"name: [a]\nversion: {b: c}\n", "", ""},
		"nothing in it": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			content := artifact.Content{Archive: targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: test.metadata})}
			opened, err := opener.Run(&opener.Job{Unpack: &opener.Unpack{Content: content, Limits: artifact.Limits{}.WithDefaults()}})
			expectRefused(t, err, "")
			if err == nil && (opened.Name != test.name || opened.Version != test.version || len(opened.Files) != 1) {
				t.Errorf("it is %q %q with %d files", opened.Name, opened.Version, len(opened.Files))
			}
		})
	}
}

// TestYAML turns documents into JSON. What aliases make of little YAML is bounded.
func TestYAML(t *testing.T) {
	for name, test := range map[string]struct{ text, want, reason string }{
		"a map":          {"a: 1\nb: [x, null]\n", `{"a":1,"b":["x",null]}`, ""},
		"aliases":        {"a: &a {x: 1}\nb: *a\n", `{"a":{"x":1},"b":{"x":1}}`, ""},
		"JSON":           {`{"a": "b"}`, `{"a":"b"}`, ""},
		"a key twice":    {"a: 1\na: 2\n", `{"a":2}`, ""},
		"nothing":        {"", "null", ""},
		"no YAML":        {"\tx: [", "", failure.ArtifactInvalid},
		"many aliases":   {"x: &x " + strings.Repeat("x", 5<<10) + "\nl: [" + strings.Repeat("*x,", 100) + "]\n", "", failure.ArtifactTooLarge},
		"in itself":      {"x: &x {a: *x}\n", "", failure.ArtifactInvalid},
		"a large scalar": {"x: " + strings.Repeat("x", 300<<10), "", failure.ArtifactTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := opener.Run(&opener.Job{YAML: &opener.YAML{Data: []byte(test.text)}})
			expectRefused(t, err, test.reason)
			if err == nil && string(opened.JSON) != test.want {
				t.Errorf("got %s, want %s", opened.JSON, test.want)
			}
		})
	}
}

// TestPackage leaves out what `helm package` does.
func TestPackage(t *testing.T) {
	own := []string{"Chart.yaml", "templates/settings.yaml"}
	for name, test := range map[string]struct {
		chart  map[string]string
		want   []string // files
		reason string
	}{
		"a chart":             {chartfiles.Of(t, "demo", "1.0.0", nil), own, ""},
		"ignored files":       {chartfiles.Of(t, "demo", "1.0.0", nil, ".helmignore", "*.bak\n", "x.bak", ""), append([]string{".helmignore"}, own...), ""},
		"no chart":            {map[string]string{"x": ""}, nil, failure.ArtifactInvalid},
		"a large .helmignore": {chartfiles.Of(t, "demo", "1.0.0", nil, ".helmignore", strings.Repeat("x\n", 40<<10)), nil, failure.ArtifactTooLarge},
		"a bad .helmignore":   {chartfiles.Of(t, "demo", "1.0.0", nil, ".helmignore", "a/**\n"), nil, failure.ArtifactInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := opener.Run(&opener.Job{Package: &opener.Package{Files: chartfiles.Render(test.chart)}})
			expectRefused(t, err, test.reason)
			if err != nil {
				return
			}
			must.Equal(t, test.want, artifact.Names(opened.Files))
		})
	}
}

func readIndex(text []byte) (map[string][]opener.ChartVersion, error) {
	opened, err := opener.Run(&opener.Job{Index: &opener.Index{Data: text}})
	if err != nil {
		return nil, err
	}
	return opened.Charts, nil
}

// What Helm reads is read, however it is written; what Helm skips is left out.
func TestIndexesAreReadAsByHelm(t *testing.T) {
	one := map[string][]opener.ChartVersion{"demo": {{Version: "1.0.0", URL: "demo.tgz", Digest: "abc"}}}
	for name, test := range map[string]struct {
		text string
		want map[string][]opener.ChartVersion // nil if it is refused
	}{
		"as Helm writes it":                {"apiVersion: v1\nentries:\n  demo:\n  - digest: abc\n    urls:\n    - demo.tgz\n    version: 1.0.0\ngenerated: \"2026-01-02T03:04:05Z\"\n", one},
		"without apiVersion":               {"entries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"comments":                         {"# x\nentries: # y\n  demo: # z\n  - version: 1.0.0 # a\n    # b\n    urls: [demo.tgz]\n    digest: abc\n", one},
		"flow style":                       {"entries: {demo: [{version: 1.0.0, urls: [demo.tgz], digest: abc}]}\n", one},
		"anchors":                          {"x: &v {version: 1.0.0, urls: [demo.tgz], digest: abc}\nentries:\n  demo:\n  - *v\n", one},
		"merged":                           {"x: &v {urls: [demo.tgz], digest: abc}\nentries:\n  demo:\n  - <<: *v\n    version: 1.0.0\n", one},
		"escaped keys":                     {"\"entr\\u0069es\":\n  \"d\\x65mo\":\n  - {\"version\": 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"JSON":                             {`{"entries": {"demo": [{"version": "1.0.0", "urls": ["demo.tgz"], "digest": "abc"}]}}`, one},
		"several URLs":                     {"entries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz, other.tgz], digest: abc}\n", one},
		"unknown fields":                   {"x: {y: z}\nentries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc, annotations: {a: b}, dependencies: [{name: c}]}\n", one},
		"a null entry":                     {"entries:\n  demo:\n  -\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"without version":                  {"entries:\n  demo:\n  - {urls: [x.tgz]}\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"without URL":                      {"entries:\n  demo:\n  - {version: 2.0.0}\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"a byte mark":                      {"\ufeffentries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"no charts":                        {"entries: {}\n", map[string][]opener.ChartVersion{}},
		"an empty chart":                   {"entries: {demo: []}\n", map[string][]opener.ChartVersion{}},
		"comments between":                 {"# a\nentries:\n# b\n  demo: # c\n    # d\n    - version: 1.0.0\n  # e\n      urls:\n      - demo.tgz\n\n      digest: abc\n# f\n", one},
		"a chart twice":                    {"entries:\n  demo:\n  - {version: 2.0.0, urls: [a]}\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"quotes across lines":              {"entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n    digest: abc\n    description: \"a\n  - version: 2.0.0\n    urls: [b]\n    x: '\"\n", one},
		"a text of lines":                  {"entries:\n  demo:\n  - version: 1.0.0\n    description: |\n      - version: 2.0.0\n        urls: [x]\n      # y\n    urls: [demo.tgz]\n    digest: abc\ny: |\n  demo:\n  - z\n", one},
		"an anchor of another version":     {"entries:\n  demo:\n  - &v\n    digest: abc\n    urls: [demo.tgz]\n    version: ''\n  - <<: *v\n    version: 1.0.0\n", one},
		"entries twice":                    {"entries:\n  other:\n  - {version: 1.0.0, urls: [x]}\nentries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"entries, spelled otherwise":       {"entries:\n  other:\n  - {version: 1.0.0, urls: [x]}\nEntries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", map[string][]opener.ChartVersion{"other": {{Version: "1.0.0", URL: "x"}}, "demo": one["demo"]}},
		"two documents":                    {"entries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n---\nentries:\n  demo:\n  - {version: 2.0.0, urls: [x]}\n", one},
		"carriage returns":                 {"entries:\r\n  demo:\r\n  - version: 1.0.0\r\n    urls: [demo.tgz]\r    digest: abc\r\n", one},
		"a chart behind a carriage return": {"entries:\n  empty: []\r  demo:\n  - {version: 1.0.0, urls: [demo.tgz], digest: abc}\n", one},
		"broken behind":                    {"entries:\n  demo:\n  - {version: 1.0.0, urls: [demo.tgz]}\nx: [\n", nil},
		"no entries":                       {"apiVersion: v1\n", nil},
		"nothing":                          {"", nil},
		"a web page":                       {"<!DOCTYPE html><p>sentinel</p>", nil},
		"another type":                     {"entries: [a]\n", nil},
		"a list of texts":                  {"entries:\n  demo: [x]\n", nil},
		"broken":                           {"entries:\n  demo:\n  - version: [\n", nil},
		"deep brackets":                    {`{"x":` + strings.Repeat("[", 1<<20), nil},
		"an alias bomb":                    {"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\nentries: {}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readIndex([]byte(test.text))
			if test.want == nil {
				expectRefused(t, err, failure.ArtifactInvalid)
				if err != nil && strings.Contains(err.Error(), "sentinel") {
					t.Errorf("the error tells what is in it: %v", err)
				}
				return
			}
			expectRefused(t, err, "")
			must.Equal(t, test.want, got)
		})
	}
}

// wholeIndex reads an index as one document of YAML; nil if it isn't one.
func wholeIndex(data []byte) map[string][]opener.ChartVersion {
	var whole struct {
		Entries map[string][]*struct {
			Version, Digest string
			URLs            []string
		}
	}
	if yaml.Unmarshal(data, &whole) != nil || whole.Entries == nil {
		return nil
	}
	charts := map[string][]opener.ChartVersion{}
	for name, versions := range whole.Entries {
		for _, v := range versions {
			if v != nil && v.Version != "" && len(v.URLs) > 0 {
				charts[name] = append(charts[name], opener.ChartVersion{Version: v.Version, URL: v.URLs[0], Digest: v.Digest})
			}
		}
	}
	return charts
}

// FuzzIndex looks for an index that makes the reader panic, that it reads in two ways, or otherwise than one document.
//
//	go test -fuzz FuzzIndex ./internal/artifact/opener
func FuzzIndex(f *testing.F) {
	f.Add([]byte("entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n"))
	f.Add([]byte(`{"entries": {"demo": [{"version": "1.0.0", "urls": ["demo.tgz"]}]}}`))
	f.Add([]byte("entries: {demo: [{version: 1.0.0, urls: [a]}, null]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readIndex(data)
		if _, ok := errors.AsType[*failure.Error](err); err != nil && !ok {
			t.Errorf("got %v", err)
		}
		for name, versions := range got {
			for _, v := range versions {
				if v.Version == "" {
					t.Errorf("%q has a version without one", name)
				}
			}
		}
		again, _ := readIndex(data)
		must.Equal(t, got, again)
		if want := wholeIndex(data); !json.Valid(data) {
			must.Equal(t, want, got)
		}
	})
}
