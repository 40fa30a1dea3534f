// SPDX-License-Identifier: Apache-2.0

// Package chartfiles makes the charts of tests: their files, locks and archives.
package chartfiles

import (
	"maps"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// YAML writes a value as YAML.
func YAML(t testing.TB, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	must.Succeed(t, err)
	return string(data)
}

// ChartYAML is a Chart.yaml.
func ChartYAML(t testing.TB, name, version string, declared ...*chart.Dependency) string {
	t.Helper()
	return YAML(t, chart.Metadata{APIVersion: "v2", Name: name, Version: version, Dependencies: declared})
}

// Of is a chart's files: names and contents, in turn.
func Of(t testing.TB, name, version string, declared []*chart.Dependency, more ...string) map[string]string {
	t.Helper()
	files := map[string]string{
		"Chart.yaml":              ChartYAML(t, name, version, declared...),
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-" + version + "}\n",
	}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// Packed is the archive of a chart's files.
func Packed(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var entries []targz.Entry
	for _, file := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, targz.Entry{Name: name + "/" + file, Data: files[file]})
	}
	return targz.Of(t, entries...)
}

// Render of a chart, as they come out of an archive.
func Render(files map[string]string) []artifact.File {
	var all []artifact.File
	for name, data := range files {
		all = append(all, artifact.File{Name: name, Data: []byte(data)})
	}
	slices.SortFunc(all, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	return all
}
