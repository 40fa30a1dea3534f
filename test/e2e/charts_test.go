// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/cluster-chandler/chandler/test/realdata"
)

// chart is a small chart: the texts of its files by their paths. Chart.yaml gets
// apiVersion, name and version by itself.
type chart map[string]string

// writeChart puts a chart into the artifact root as a folder, and returns its
// path. It appears there at once, complete.
func (tn *tenant) writeChart(name, version string, c chart) string {
	tn.t.Helper()
	path := name + "-" + version
	staged := filepath.Join(tn.t.TempDir(), path)
	for file, text := range c.complete(name, version) {
		file = filepath.Join(staged, file)
		must(tn.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(tn.t, os.WriteFile(file, []byte(text), 0o644))
	}
	must(tn.t, os.Rename(staged, filepath.Join(tn.charts, path)))
	return path
}

// smallChart puts configMapChart into the artifact root, unless it is there, and returns its path.
func (tn *tenant) smallChart() string {
	tn.t.Helper()
	const name, version = "settings", "1.0.0"
	if _, err := os.Stat(filepath.Join(tn.charts, name+"-"+version)); err == nil {
		return name + "-" + version
	}
	return tn.writeChart(name, version, configMapChart)
}

// archive packs a chart as "helm package" does.
func (c chart) archive(name, version string) []byte {
	files := map[string]string{}
	for file, text := range c.complete(name, version) {
		files[name+"/"+file] = text
	}
	return tarball(files)
}

func (c chart) complete(name, version string) map[string]string {
	files := maps.Clone(c)
	files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version) + c["Chart.yaml"]
	return files
}

// realChart puts a published chart into the artifact root and returns its
// path. It skips the test where there are none.
func (tn *tenant) realChart(file string) string {
	tn.t.Helper()
	must(tn.t, os.WriteFile(filepath.Join(tn.charts, file), realdata.Read(tn.t, "charts", file), 0o644))
	return file
}

// configMapChart has one ConfigMap, named after the release, with the text of
// .Values.text.
var configMapChart = chart{
	"values.yaml":         "text: default\n",
	"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ .Values.text | quote }}"),
}

// configMap is the manifest of a ConfigMap with one key, "text".
func configMap(name, text string) string {
	return strings.Join([]string{
		"apiVersion: v1", "kind: ConfigMap", "metadata: {name: " + quoted(name) + "}", "data: {text: " + text + "}", "",
	}, "\n")
}

// quoted is a YAML string that a template may be in.
func quoted(s string) string { return "'" + s + "'" }
