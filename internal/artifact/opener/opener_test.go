// SPDX-License-Identifier: Apache-2.0

package opener_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/test/chartfiles"
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

// TestComplete puts neighbours into charts/, as `helm dependency build` does.
func TestComplete(t *testing.T) {
	common := chartfiles.Dep("common", ">=1.0.0", "file://../common")
	beside := chartfiles.Of(t, "common", "1.2.0", nil, ".helmignore", "*.bak\n", "x.bak", "")
	with := func(more ...string) map[string]string {
		return chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(common), more...)
	}
	own := []string{"Chart.yaml", "templates/settings.yaml"}
	added := []string{"charts/common-1.2.0/.helmignore", "charts/common-1.2.0/Chart.yaml", "charts/common-1.2.0/templates/settings.yaml"}
	for name, test := range map[string]struct {
		chart  map[string]string
		want   []string // files
		reason string
	}{
		"a neighbour":         {with(), slices.Concat(own[:1], added, own[1:]), ""},
		"it is there":         {with("charts/common/Chart.yaml", chartfiles.ChartYAML(t, "common", "1.2.0")), slices.Concat(own[:1], []string{"charts/common/Chart.yaml"}, own[1:]), ""},
		"it is there packed":  {with("charts/common-1.2.0.tgz", string(chartfiles.Packed(t, "common", beside))), slices.Concat(own[:1], []string{"charts/common-1.2.0.tgz"}, own[1:]), ""},
		"no such directory":   {chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(chartfiles.Dep("gone", "1.x", "file://../gone"))), nil, failure.ArtifactNotFound},
		"another version":     {chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(chartfiles.Dep("common", "2.x", "file://../common"))), nil, failure.ArtifactInvalid},
		"another chart":       {chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(chartfiles.Dep("redis", "1.x", "file://../common"))), nil, failure.ArtifactInvalid},
		"outside":             {chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(chartfiles.Dep("common", "1.x", "file://../../common"))), nil, failure.ArtifactRefused},
		"something is there":  {with("charts/common-1.2.0/x", ""), slices.Concat(own[:1], []string{"charts/common-1.2.0/x"}, own[1:]), ""}, // the renderer refuses it
		"no chart":            {map[string]string{"x": ""}, nil, failure.ArtifactInvalid},
		"a large .helmignore": {with(".helmignore", strings.Repeat("x\n", 40<<10)), nil, failure.ArtifactTooLarge},
		"a bad .helmignore":   {with(".helmignore", "a/**\n"), nil, failure.ArtifactInvalid},
		"elsewhere":           {chartfiles.Of(t, "demo", "1.0.0", chartfiles.Deps(chartfiles.Dep("c", "1.x", "https://x"))), own, ""}, // the renderer refuses it
	} {
		t.Run(name, func(t *testing.T) {
			charts := map[string][]artifact.File{"demo": chartfiles.Render(test.chart), "common": chartfiles.Render(beside), "gone": nil}
			opened, err := opener.Run(&opener.Job{Complete: &opener.Complete{At: "demo", Charts: charts, Limits: artifact.Limits{}.WithDefaults()}})
			expectRefused(t, err, test.reason)
			if err != nil {
				return
			}
			var names []string
			for _, file := range opened.Files {
				names = append(names, file.Name)
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A chart that neighbours make too large, or whose neighbours fan out, is refused.
func TestCompleteIsBounded(t *testing.T) {
	charts := map[string][]artifact.File{}
	var declared []string
	for i := range 65 {
		name := fmt.Sprintf("n%02d", i)
		declared = append(declared, fmt.Sprintf("- {name: %[1]s, version: 1.0.0, repository: 'file://../%[1]s'}", name))
		charts[name] = chartfiles.Render(chartfiles.Of(t, name, "1.0.0", nil))
	}
	for count, reason := range map[int]string{64: "", 65: failure.ArtifactTooLarge} {
		all := maps.Clone(charts)
		all["demo"] = chartfiles.Render(map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies:\n" + strings.Join(declared[:count], "\n")})
		_, err := opener.Run(&opener.Job{Complete: &opener.Complete{At: "demo", Charts: all, Limits: artifact.Limits{}.WithDefaults()}})
		expectRefused(t, err, reason)
		_, err = opener.Run(&opener.Job{Complete: &opener.Complete{At: "demo", Charts: all, Limits: artifact.Limits{TotalBytes: 5000}.WithDefaults()}})
		expectRefused(t, err, failure.ArtifactTooLarge)
	}
}
