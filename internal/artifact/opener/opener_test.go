// SPDX-License-Identifier: Apache-2.0

package opener_test

import (
	"errors"
	"strings"
	"testing"

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
