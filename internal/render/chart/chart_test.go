// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
	"github.com/cluster-chandler/chandler/test/targz"
)

// dataOf renders a ConfigMap whose data are the given lines, and returns those.
func dataOf(t *testing.T, req job.Chart) map[string]any {
	t.Helper()
	result := rendering.MustRender(t, req)
	if len(result.Objects) != 1 {
		t.Fatalf("got %d objects, want 1", len(result.Objects))
	}
	data, _ := result.Objects[0].Object["data"].(map[string]any)
	return data
}

func TestChartSeesRelease(t *testing.T) {
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + `data:
  name: {{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Revision }}/{{ .Release.Service }}
  kind: install={{ .Release.IsInstall }} upgrade={{ .Release.IsUpgrade }}
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}-{{ .Chart.AppVersion }}
  template: {{ .Template.Name }}
  lookup: {{ lookup "v1" "Secret" "kube-system" "" | toJson | quote }}
  dns: {{ getHostByName "localhost" | quote }}
`))
	req.Release = job.Release{Name: "r", Namespace: "n", Revision: 7, Upgrade: true}
	want := map[string]any{
		"name": "r/n/7/Helm", "kind": "install=false upgrade=true", "chart": "demo-1.2.3-v9",
		"template": "demo/templates/a.yaml", "lookup": "{}", "dns": "",
	}
	must.Equal(t, want, dataOf(t, req))
}

func packed(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	below := map[string]string{}
	for name, text := range files {
		below[folder+"/"+name] = text
	}
	return string(targz.Files(t, below))
}

// Charts of apiVersion v3 have the structure of those of v2 (helm.sh/helm/v4/internal/chart/v3).
func TestSubcharts(t *testing.T) {
	for _, version := range []string{"v2", "v3"} {
		t.Run(version, func(t *testing.T) { testSubcharts(t, version) })
	}
}

func testSubcharts(t *testing.T, version string) {
	t.Helper()
	sub := func(name string) map[string]string {
		return map[string]string{
			"Chart.yaml":       "apiVersion: " + version + "\nname: " + name + "\nversion: 1.0.0\n",
			"values.yaml":      "who: default\nexports: {data: {imported: yes-it-is}}\n",
			"crds/c.yaml":      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n",
			"templates/a.yaml": strings.Replace(rendering.ConfigMap, "name: a", "name: "+name, 1) + "data: {who: {{ .Values.who }}}\n",
		}
	}
	files := map[string]string{
		"Chart.yaml": `{apiVersion: ` + version + `, name: demo, version: 1.0.0, dependencies: [
  {name: folder, version: 1.0.0, import-values: [data]},
  {name: packed, version: 1.0.0, condition: packed.enabled},
  {name: folder, version: 1.0.0, alias: again, tags: [more]}]}`,
		"values.yaml":         "packed: {enabled: true}\ntags: {more: false}\nfolder: {who: parent}\n",
		"templates/a.yaml":    rendering.ConfigMap + "data: {imported: {{ .Values.imported }}}\n",
		"charts/packed-1.tgz": packed(t, "packed", sub("packed")),
	}
	for name, text := range sub("folder") {
		files["charts/folder/"+name] = text
	}
	names := func(values map[string]any) (objects []string, crds []string) {
		req := rendering.ChartJob(rendering.ChartOf(files))
		req.Values = values
		result := rendering.MustRender(t, req)
		for _, o := range result.Objects {
			data, _ := json.Marshal(o.Object["data"])
			objects = append(objects, o.GetName()+string(data))
		}
		for _, o := range result.CRDs {
			crds = append(crds, o.GetName())
		}
		return objects, crds
	}
	objects, crds := names(nil)
	must.Equal(t, []string{`folder{"who":"parent"}`, `packed{"who":"default"}`, `a{"imported":"yes-it-is"}`}, objects)
	must.Equal(t, []string{"folder", "packed"}, crds)
	objects, crds = names(map[string]any{"packed": map[string]any{"enabled": false}, "folder": map[string]any{"who": "user"}})
	must.Equal(t, []string{`folder{"who":"user"}`, `a{"imported":"yes-it-is"}`}, objects)
	must.Equal(t, []string{"folder"}, crds)
}

// Helm shows the notes of the chart itself, and not those of its subcharts.
func TestNotes(t *testing.T) {
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\n", "templates/a.yaml": rendering.ConfigMap,
		"templates/NOTES.txt": "\nSee {{ .Release.Name }}{{ if .Values.long }}{{ repeat 9000 \"äö\" }}{{ end }}\n", "charts/sub/templates/NOTES.txt": "another",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
	}
	for _, long := range []bool{false, true} {
		req := rendering.ChartJob(rendering.ChartOf(files))
		req.Values = map[string]any{"long": long}
		result := rendering.MustRender(t, req)
		if got := result.Notes; !strings.HasPrefix(got, "See "+req.Release.Name) || strings.Contains(got, "another") || len(got) > job.MaxNotes ||
			long && len(got) < job.MaxNotes-4 || !utf8.ValidString(got) || len(result.Objects) != 1 {
			t.Errorf("%d objects, %d bytes of notes: %.40q", len(result.Objects), len(got), got)
		}
	}
}

func TestChartRefused(t *testing.T) {
	with := func(chartYAML string) []artifact.File {
		return rendering.ChartOf(map[string]string{"Chart.yaml": chartYAML, "templates/a.yaml": rendering.ConfigMap})
	}
	cases := map[string]struct {
		files    []artifact.File
		reason   string
		mentions []string
	}{
		"no Chart.yaml":         {[]artifact.File{{Name: "values.yaml"}}, job.ReasonChartInvalid, []string{"Chart.yaml"}},
		"a broken Chart.yaml":   {with("{"), job.ReasonChartInvalid, []string{"Chart.yaml"}},
		"a library":             {with("{apiVersion: v2, name: a, version: 1.0.0, type: library}"), job.ReasonChartInvalid, []string{"library"}},
		"an unknown apiVersion": {with("{apiVersion: v9, name: a, version: 1.0.0}"), job.ReasonChartInvalid, []string{"v9"}},
		"missing dependencies": {with("{apiVersion: v2, name: a, version: 1.0.0, dependencies: [{name: one, version: 1.x.x}, {name: two, version: 1.x.x}]}"),
			job.ReasonChartInvalid, []string{"one, two", "charts/"}},
		"another Kubernetes":           {with(`{apiVersion: v2, name: a, version: 1.0.0, kubeVersion: "<1.30.0-0"}`), job.ReasonChartInvalid, []string{"<1.30.0-0", "v1.36.3"}},
		"a syntax error":               {rendering.ChartWith("{{ if }}"), job.ReasonTemplateFailed, []string{"demo/templates/a.yaml:1"}},
		"fail":                         {rendering.ChartWith(`{{ fail "set this" }}`), job.ReasonTemplateFailed, []string{"set this", "demo/templates/a.yaml:1"}},
		"required":                     {rendering.ChartWith(`{{ required "set that" .Values.x }}`), job.ReasonTemplateFailed, []string{"set that"}},
		"no YAML":                      {rendering.ChartWith("a: b: c"), job.ReasonManifestInvalid, []string{"demo/templates/a.yaml"}},
		"a scalar":                     {rendering.ChartWith("hello"), job.ReasonManifestInvalid, []string{"demo/templates/a.yaml", "no Kubernetes object"}},
		"no kind":                      {rendering.ChartWith("apiVersion: v1\nmetadata: {name: a}"), job.ReasonManifestInvalid, []string{"kind"}},
		"no apiVersion":                {rendering.ChartWith("kind: A\nmetadata: {name: a}"), job.ReasonManifestInvalid, []string{"apiVersion"}},
		"no metadata":                  {rendering.ChartWith("apiVersion: v1\nkind: A"), job.ReasonManifestInvalid, []string{"metadata"}},
		"no name":                      {rendering.ChartWith("apiVersion: v1\nkind: A\nmetadata: {}"), job.ReasonManifestInvalid, []string{"metadata.name"}},
		"a generated name":             {rendering.ChartWith("apiVersion: v1\nkind: A\nmetadata: {generateName: a-}"), job.ReasonManifestInvalid, []string{"generateName", "demo/templates/a.yaml"}},
		"a number as name":             {rendering.ChartWith("apiVersion: v1\nkind: A\nmetadata: {name: 5}"), job.ReasonManifestInvalid, []string{"name"}},
		"a label that is a bool":       {rendering.ChartWith("apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {x: true}}"), job.ReasonManifestInvalid, []string{"labels"}},
		"an annotation that is a bool": {rendering.ChartWith("apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: {x: true}}"), job.ReasonManifestInvalid, []string{"annotations"}},
		"one object twice": {rendering.ChartOf(map[string]string{"templates/a.yaml": rendering.ConfigMap, "templates/b.yaml": strings.Replace(rendering.ConfigMap, "name: a", "name: a, namespace: kube-system", 1)}),
			job.ReasonManifestInvalid, []string{"demo/templates/a.yaml", "demo/templates/b.yaml", "ConfigMap a"}},
		"a List as hook": {rendering.ChartWith("apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems: []"),
			job.ReasonManifestInvalid, []string{"List"}},
		"a broken CRD": {rendering.ChartOf(map[string]string{"crds/a.yaml": "a: b: c"}), job.ReasonManifestInvalid, []string{"demo/crds/a.yaml"}},
		"values that break a subchart": {rendering.ChartOf(map[string]string{"values.yaml": "sub: text", "charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 1.0.0}"}),
			job.ReasonChartInvalid, []string{"sub"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := rendering.Render(t, rendering.ChartJob(c.files))
			rendering.WantReason(t, err, c.reason, c.mentions...)
		})
	}
}

func TestObjectsAndOrder(t *testing.T) {
	result := rendering.MustRender(t, rendering.ChartJob(rendering.ChartOf(map[string]string{
		"templates/z.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {replicas: 3, ratio: 1.5}
---
# only a comment
---

---
apiVersion: example.com/v1
kind: Zebra
metadata: {name: z}
---
apiVersion: example.com/v1
kind: Ant
metadata: {name: z}
`,
		"templates/list.yaml": `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: s}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleList, items: [{metadata: {name: r}}]}
`,
		"templates/ns.yaml":      "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n",
		"templates/NOTES.txt":    "notes: [",
		"templates/_helpers.tpl": `{{ define "x" }}{{ end }}`,
		"templates/empty.yaml":   "\n{{- if false }}a: b{{ end }}\n",
	})))
	var got []string
	for _, o := range result.Objects {
		got = append(got, o.GetKind()+"/"+o.GetName())
	}
	want := []string{"Namespace/ns", "Role/r", "Service/s", "Deployment/d", "Ant/z", "Zebra/z"}
	must.Equal(t, want, got)
	spec := result.Objects[3].Object["spec"]
	must.Equal[any](t, map[string]any{"replicas": int64(3), "ratio": 1.5}, spec, "numbers")
	if strings.Contains(result.Manifest, "notes") || !strings.HasPrefix(result.Manifest, "---\n# Source: demo/templates/ns.yaml\napiVersion: v1\n") {
		t.Errorf("manifest:\n%s", result.Manifest)
	}
}

func TestHooks(t *testing.T) {
	hook := func(name, annotations string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n---\n"
	}
	result := rendering.MustRender(t, rendering.ChartJob(rendering.ChartWith(
		hook("late", `helm.sh/hook: "post-install, Post-Upgrade", helm.sh/hook-weight: "5", helm.sh/hook-delete-policy: "hook-succeeded,hook-failed"`)+
			hook("b", `helm.sh/hook: pre-install`)+
			hook("a", `helm.sh/hook: "pre-install,test", helm.sh/hook-weight: "no number"`)+
			hook("early", `helm.sh/hook: pre-delete, helm.sh/hook-weight: "-5"`)+
			hook("test", `helm.sh/hook: test`)+hook("old-test", `helm.sh/hook: test-success`)+
			hook("kept", `helm.sh/resource-policy: keep`))))
	type summary struct {
		Name             string
		Events, Policies []string
		Weight           int
	}
	var got []summary
	for _, h := range result.Hooks {
		got = append(got, summary{h.Name, h.Events, h.DeletePolicies, h.Weight})
		if h.Object.GetName() != h.Name || h.Kind != "Job" || h.Path != "demo/templates/a.yaml" || !strings.Contains(h.Manifest, "name: "+h.Name) {
			t.Errorf("hook %+v", h)
		}
	}
	before := []string{"before-hook-creation"}
	want := []summary{
		{"early", []string{"pre-delete"}, before, -5},
		{"a", []string{"pre-install"}, before, 0},
		{"b", []string{"pre-install"}, before, 0},
		{"late", []string{"post-install", "post-upgrade"}, []string{"hook-succeeded", "hook-failed"}, 5},
	}
	must.Equal(t, want, got)
	if len(result.Objects) != 1 || result.Objects[0].GetAnnotations()["helm.sh/resource-policy"] != "keep" {
		t.Errorf("objects: %v", result.Objects)
	}
}

// TestHooksOfOtherHelmsAreLeftOut has events of Helm 2: Helm leaves their objects out.
func TestHooksOfOtherHelmsAreLeftOut(t *testing.T) {
	for _, events := range []string{"crd-install", "test-failure", "test-success", "pre-install,crd-install", "pre-dinner"} {
		files := map[string]string{
			"templates/a.yaml": rendering.ConfigMap,
			"templates/h.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: h, annotations: {helm.sh/hook: '" + events + "'}}\n",
		}
		result, err := rendering.Render(t, rendering.ChartJob(rendering.ChartOf(files)))
		if err != nil {
			t.Fatalf("%s: %v", events, err)
		}
		if len(result.Objects) != 1 || len(result.Hooks) != 0 {
			t.Errorf("%s: %d objects and %d hooks", events, len(result.Objects), len(result.Hooks))
		}
	}
}

func TestMetadataAsInHelmsRecord(t *testing.T) {
	files := rendering.ChartOf(map[string]string{"Chart.yaml": "{apiVersion: v1, name: old, version: 1.0.0, description: Some text, keywords: [a]}"})
	result := rendering.MustRender(t, rendering.ChartJob(files))
	want := &chart.Metadata{APIVersion: "v1", Name: "old", Version: "1.0.0", Description: "Some text", Keywords: []string{"a"}}
	got := &chart.Chart{}
	must.Succeed(t, json.Unmarshal(result.Chart, got))
	must.Equal(t, want, got.Metadata)
}

func TestSensitiveStringsStayOutOfErrors(t *testing.T) {
	req := rendering.ChartJob(rendering.ChartWith(`{{ fail (printf "bad: %s" .Values.token) }}`))
	req.Values, req.Sensitive = map[string]any{"token": "s3cr3t-token"}, []string{"s3cr3t-token", "a"}
	_, err := rendering.NewRenderer(t).Chart(t.Context(), req)
	rendering.WantReason(t, err, job.ReasonTemplateFailed, "bad: [hidden]")
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("error shows the secret: %v", err)
	}
}

// TestGeneratedValuesStayOutOfErrors has a chart fail with what it generated, now and in an earlier rendering.
func TestGeneratedValuesStayOutOfErrors(t *testing.T) {
	generating := rendering.ConfigMap + `data: {key: {{ $key := randAlphaNum 20 }}{{ $key }}, ca: {{ $ca := genCA "ca" 365 }}{{ $ca.Key | b64enc }}}`
	r := rendering.NewRenderer(t)
	first := rendering.MustChart(t, r, rendering.ChartJob(rendering.ChartWith(generating)))
	for name, generated := range map[string]job.Generated{"made up now": nil, "earlier": first.Generated} {
		req := rendering.ChartJob(rendering.ChartWith(generating + `{{ fail (printf "bad: %s, %s" $key $ca.Key) }}`))
		req.Generated = generated
		_, err := r.Chart(t.Context(), req)
		if err == nil || !strings.Contains(err.Error(), "bad: [hidden], [hidden]") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValuesOverDefaults(t *testing.T) {
	req := rendering.ChartJob(rendering.ChartOf(map[string]string{
		"values.yaml":      "keep: 1\ndrop: {a: 1}\nlist: [1, 2]\nnested: {a: 1, b: 2}\nbig: 1000000\n",
		"templates/a.yaml": rendering.ConfigMap + "data: {values: {{ .Values | toJson | quote }}, big: \"{{ .Values.big }}\", hasDrop: \"{{ hasKey .Values \"drop\" }}\"}",
	}))
	req.Values = map[string]any{"drop": nil, "list": []any{"x"}, "nested": map[string]any{"b": int64(3)}}
	want := map[string]any{
		"values":  `{"big":1000000,"keep":1,"list":["x"],"nested":{"a":1,"b":3}}`,
		"big":     "1e+06", // as Helm has it
		"hasDrop": "false",
	}
	must.Equal(t, want, dataOf(t, req))
}

func TestNumbersKeepTheirTypeOnTheWire(t *testing.T) {
	r := rendering.NewRenderer(t)
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + `data: {a: "{{ kindOf .Values.i }} {{ kindOf .Values.f }} {{ .Values.i }} {{ .Values.f }}"}`))
	req.Values = map[string]any{"i": int64(1000000), "f": float64(1000000)}
	result := rendering.MustChart(t, r, req)
	must.Equal[any](t, "int64 float64 1000000 1e+06", result.Objects[0].Object["data"].(map[string]any)["a"])
}

func TestMapsComeInOrder(t *testing.T) {
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + `data: {keys: {{ keys .Values | toJson | quote }}, values: {{ values .Values | toJson | quote }}}`))
	req.Values = map[string]any{}
	for _, letter := range strings.Split("qwertyuiopasdfghjklzxcvbnm", "") {
		req.Values[letter] = letter
	}
	data := dataOf(t, req)
	var keys []string
	must.Succeed(t, json.Unmarshal([]byte(data["keys"].(string)), &keys))
	if !slices.IsSorted(keys) || data["keys"] != data["values"] {
		t.Errorf("got %v", data)
	}
}

// TestLastNewline has a block of text at the end of a template. It is applied as it is recorded, and as Helm installs it.
func TestLastNewline(t *testing.T) {
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + "data:\n  rules: |\n    {}\n{{- \"\" }}"))
	must.Equal(t, map[string]any{"rules": "{}\n"}, dataOf(t, req))
}

// A chart may write a key twice, as published ones do: nobody but its authors can correct it. The last one counts, for
// Helm and for who reads the record.
func TestKeyTwiceInAChart(t *testing.T) {
	got := rendering.MustRender(t, rendering.ChartJob(rendering.ChartOf(map[string]string{
		"templates/a.yaml":    rendering.ConfigMap + "data: {a: x, b: w, a: z}",
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\ndata: {a: x, a: z}",
	})))
	recorded, err := record.ParseManifest(got.Manifest)
	must.Succeed(t, err)
	want := map[string]any{"a": "z", "b": "w"}
	for from, object := range map[string]*unstructured.Unstructured{"rendering": got.Objects[0], "record": recorded[0]} {
		must.Equal[any](t, want, object.Object["data"], from)
	}
	must.Len(t, 1, got.Hooks, "hooks")
}
