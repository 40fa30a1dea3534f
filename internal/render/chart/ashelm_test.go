// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// TestValuesOfSubchartsAsHelm has values for subcharts, their subcharts and aliases, with conditions,
// tags, imports, globals and nulls: the manifest is Helm's, and what Helm refuses is refused.
func TestValuesOfSubchartsAsHelm(t *testing.T) {
	dump := "data:\n  values: {{ .Values | toJson | quote }}\n  chart: {{ .Chart.Name }}\n  cap: '{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has \"apps/v1\" }} {{ len .Capabilities.APIVersions }} {{ .Capabilities.KubeVersion }}'\n  rel: '{{ .Release.IsUpgrade }} {{ .Release.IsInstall }} {{ .Release.Revision }} {{ .Release.Service }}'\n  look: '{{ lookup \"v1\" \"Secret\" \"x\" \"y\" | toJson }}'\n  tpl: {{ tpl \"{{ .Release.Name }}-{{ .Template.Name }}\" . | quote }}\n  sub: {{ .Subcharts | default dict | keys | sortAlpha | toJson | quote }}\n  files: {{ (.Files.Glob \"*.txt\").AsConfig | quote }}\n"
	cm := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '" + name + "-{{ .Chart.Name }}'}\n" + dump
	}
	leaf := map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: leaf\nversion: 1.0.0\n",
		"values.yaml":      "who: leaf\nlist: [1,2]\nnested: {a: 1, b: {c: 2}}\nglobal: {g: leaf}\nexports: {data: {imported: leaf, deep: {x: 1}}}\nbig: 1000000\n",
		"templates/a.yaml": cm("leaf-{{ .Values.who }}"),
		"x.txt":            "text",
	}
	mid := map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: mid\nversion: 1.0.0\ndependencies: [{name: leaf, version: 1.0.0, condition: leaf.enabled, import-values: [data, {child: nested, parent: fromleaf}]}]\n",
		"values.yaml":           "who: mid\nleaf: {who: from-mid, enabled: true, nested: {b: {d: 3}}}\nglobal: {g: mid, only: mid}\nexports: {data: {mid: 1}}\n",
		"templates/a.yaml":      cm("mid"),
		"charts/leaf-1.0.0.tgz": packed(t, "leaf", leaf),
	}
	top := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies:\n" +
			"- {name: mid, version: 1.0.0, condition: 'mid.enabled,global.mid', tags: [t1]}\n" +
			"- {name: mid, version: 1.0.0, alias: again, tags: [t2], import-values: [{child: leaf.nested, parent: up}, data]}\n" +
			"- {name: leaf, version: 1.0.0, alias: other, condition: other.enabled}\n",
		"values.yaml":           "tags: {t2: false}\nmid: {who: top}\nagain: {leaf: {who: again}}\nglobal: {g: top, n: {a: 1}}\nother: {enabled: false, who: other}\n",
		"templates/a.yaml":      cm("top"),
		"templates/NOTES.txt":   "x",
		"charts/mid-1.0.0.tgz":  packed(t, "mid", mid),
		"charts/leaf-1.0.0.tgz": packed(t, "leaf", leaf),
	}
	archive := packed(t, "demo", top)
	cases := []map[string]any{
		nil,
		{"tags": map[string]any{"t2": true}},
		{"tags": map[string]any{"t1": false}},
		{"mid": map[string]any{"enabled": false}},
		{"mid": map[string]any{"enabled": true, "leaf": map[string]any{"enabled": false}}, "tags": map[string]any{"t1": false}},
		{"global": map[string]any{"mid": false}},
		{"global": nil},
		{"global": map[string]any{"g": nil, "n": nil}},
		{"mid": nil},
		{"mid": map[string]any{"who": nil, "leaf": nil}},
		{"mid": map[string]any{"leaf": map[string]any{"nested": nil, "list": nil, "who": "x"}}},
		{"mid": map[string]any{"leaf": map[string]any{"nested": map[string]any{"a": nil, "b": map[string]any{"c": nil}}}}},
		{"other": map[string]any{"enabled": true, "nested": map[string]any{"b": nil}}},
		{"again": map[string]any{"leaf": map[string]any{"enabled": false}}, "tags": map[string]any{"t2": true}},
		{"up": map[string]any{"a": nil}, "tags": map[string]any{"t2": true}},
		{"other": map[string]any{"enabled": true, "big": float64(12345678), "f": 1.5, "i": float64(3)}},
		{"fromleaf": "x", "imported": nil},
		{"mid": "string"},
		{"other": map[string]any{"enabled": "yes"}},
	}
	files := []artifact.File{}
	for name, text := range top {
		files = append(files, artifact.File{Name: name, Data: []byte(text)})
	}
	for i, values := range cases {
		t.Run(fmt.Sprint(i, " ", values), func(t *testing.T) {
			clone := func() map[string]any { return runtime.DeepCopyJSON(values) }
			req := rendering.ChartJob(files)
			req.Values, req.Facts = clone(), helmFacts()
			got, err := rendering.Render(t, req)
			helms, helmErr := helmtemplate.Of([]byte(archive), clone(), rendering.Facts.KubeVersion, rendering.Facts.APIVersions...)
			if err != nil || helmErr != nil {
				if (err == nil) != (helmErr == nil) {
					t.Errorf("ours: %v, Helm's: %v", err, helmErr)
				}
				return
			}
			must.Equal(t, helms.Manifest, got.Manifest, "manifest differs from Helm's")
			compareDefaults(t, helms, got)
		})
	}
}
