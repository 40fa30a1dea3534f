// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// patched is a chart with objects of all sorts.
func patched(patches ...addonsv1.Patch) job.Chart {
	req := rendering.ChartJob(rendering.ChartOf(map[string]string{
		"crds/widget.yaml":          "# kept\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.org}\nspec: {group: example.org}\n",
		"templates/web.yaml":        rendering.Deployment,
		"templates/service.yaml":    "# a comment\n" + rendering.WebService,
		"templates/list.yaml":       "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {big: \"9007199254740993\"}}\n- {apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: other}, spec: {parts: [1, 2], big: 9007199254740993, half: 0.5}}\n",
		"templates/role.yaml":       "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\nrules: []\n",
		"templates/hook.yaml":       "apiVersion: batch/v1\nkind: Job\nmetadata: {name: setup, annotations: {helm.sh/hook: pre-install}}\nspec: {template: {spec: {containers: [{name: a, image: busybox}]}}}\n",
		"templates/NOTES.txt":       "thanks",
		"templates/_helpers.tpl":    "",
		"templates/tests/test.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\n",
	}))
	req.Patches = patches
	return req
}

func to(target addonsv1.PatchTarget, text string) addonsv1.Patch {
	return addonsv1.Patch{Target: &target, Patch: text}
}

// at reads a field of the result's object with that kind and name.
func at(t *testing.T, result *job.Result, kind, name string, path ...any) any {
	t.Helper()
	all := append(result.Objects[:len(result.Objects):len(result.Objects)], result.CRDs...)
	for _, hook := range result.Hooks {
		all = append(all, hook.Object)
	}
	for _, object := range all {
		if object.GetKind() != kind || object.GetName() != name {
			continue
		}
		var value any = object.Object
		for _, step := range path {
			switch step := step.(type) {
			case string:
				value = value.(map[string]any)[step]
			case int:
				value = value.([]any)[step]
			}
		}
		return value
	}
	return nil
}

func TestPatches(t *testing.T) {
	container := []any{"spec", "template", "spec", "containers"}
	cases := map[string]struct {
		patch      addonsv1.Patch
		kind, name string
		path       []any
		want       any
	}{
		"a strategic merge by the patch's own name": {
			addonsv1.Patch{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5}\n"},
			"Deployment", "web", []any{"spec", "replicas"}, int64(5)},
		"a merge of a list by its key": {
			to(addonsv1.PatchTarget{Kind: "Deployment"}, "spec: {template: {spec: {containers: [{name: side, image: other}]}}}"),
			"Deployment", "web", append(container, 0), map[string]any{"name": "side", "image": "other"}},
		"an element that is deleted": {
			to(addonsv1.PatchTarget{Group: "apps", Version: "v1"}, "spec: {template: {spec: {containers: [{name: side, $patch: delete}]}}}"),
			"Deployment", "web", container, []any{map[string]any{"name": "web", "image": "nginx:1.27", "env": []any{map[string]any{"name": "A", "value": "yes"}}}}},
		"a map that is replaced": {
			to(addonsv1.PatchTarget{Name: "w.b", Kind: "Deployment"}, "metadata: {labels: {$patch: replace, a: b}}"),
			"Deployment", "web", []any{"metadata", "labels"}, map[string]any{"a": "b"}},
		"a field that is taken away": {
			to(addonsv1.PatchTarget{LabelSelector: "app=web"}, "spec: {replicas: null}"),
			"Deployment", "web", []any{"spec", "replicas"}, nil},
		"an object that is deleted": {
			addonsv1.Patch{Patch: "{apiVersion: v1, kind: Service, metadata: {name: web}, $patch: delete}"},
			"Service", "web", nil, nil},
		"a name in a patch with a target doesn't count": {
			to(addonsv1.PatchTarget{Kind: "Service"}, "{apiVersion: v9, kind: Other, metadata: {name: x, namespace: y}, spec: {type: NodePort}}"),
			"Service", "web", []any{"spec", "type"}, "NodePort"},
		"operations": {
			to(addonsv1.PatchTarget{Kind: "Deployment"}, `[{"op": "replace", "path": "/spec/replicas", "value": 7}, {op: add, path: /metadata/labels/x~1y, value: z}, {op: test, path: /kind, value: Deployment}]`),
			"Deployment", "web", []any{"metadata", "labels", "x/y"}, "z"},
		"operations in YAML, one value null": {
			to(addonsv1.PatchTarget{Kind: "Deployment", Namespace: "kube-.*"}, "- op: add\n  path: /spec/paused\n  value: null\n- {op: copy, from: /spec/replicas, path: /spec/minReadySeconds}\n"),
			"Deployment", "web", []any{"spec", "minReadySeconds"}, int64(1)},
		"an item of a List": {
			to(addonsv1.PatchTarget{Kind: "Widget", Namespace: "other"}, "spec: {more: true}"),
			"Widget", "w", []any{"spec"}, map[string]any{"parts": []any{int64(1), int64(2)}, "big": int64(9007199254740993), "half": 0.5, "more": true}},
		"a list of a custom resource is replaced": {
			to(addonsv1.PatchTarget{Group: "example.org"}, "spec: {parts: [3]}"),
			"Widget", "w", []any{"spec", "parts"}, []any{int64(3)}},
		"a CRD of crds/": {
			to(addonsv1.PatchTarget{Kind: "CustomResourceDefinition"}, "metadata: {annotations: {a: b}}"),
			"CustomResourceDefinition", "widgets.example.org", []any{"metadata", "annotations", "a"}, "b"},
		"a CRD that is deleted": {
			to(addonsv1.PatchTarget{Kind: "CustomResourceDefinition"}, "$patch: delete"),
			"CustomResourceDefinition", "widgets.example.org", nil, nil},
		"a hook": {
			to(addonsv1.PatchTarget{Kind: "Job"}, "spec: {template: {spec: {containers: [{name: a, image: mirror/busybox}]}}}"),
			"Job", "setup", append(container, 0, "image"), "mirror/busybox"},
		"a hook that becomes an object": {
			to(addonsv1.PatchTarget{Kind: "Job"}, "metadata: {annotations: {helm.sh/hook: null}}"),
			"Job", "setup", []any{"metadata", "name"}, "setup"},
		"large numbers beside operations": {
			to(addonsv1.PatchTarget{Kind: "Widget"}, "[{op: remove, path: /spec/parts}]"),
			"Widget", "w", []any{"spec"}, map[string]any{"big": int64(9007199254740993), "half": 0.5}},
		"metadata that goes, but for the name": {
			to(addonsv1.PatchTarget{Kind: "Service"}, "metadata: null"),
			"Service", "web", []any{"metadata"}, map[string]any{"name": "web"}},
		"a new name by an operation": {
			to(addonsv1.PatchTarget{Kind: "Service"}, "[{op: replace, path: /metadata/name, value: front}]"),
			"Service", "front", []any{"spec", "selector", "app"}, "web"},
		"a word that is a boolean elsewhere": {
			to(addonsv1.PatchTarget{Kind: "ConfigMap"}, "data: {a: 'on', b: 'no'}"),
			"ConfigMap", "one", []any{"data"}, map[string]any{"a": "on", "b": "no", "big": "9007199254740993"}},
	}
	r := rendering.NewRenderer(t)
	plain := rendering.MustChart(t, r, patched())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := rendering.MustChart(t, r, patched(c.patch))
			must.Equal(t, c.want, at(t, result, c.kind, c.name, c.path...))
			// All others stay, to the byte.
			for _, object := range plain.Objects {
				if object.GetKind() != c.kind {
					must.Equal[any](t, object.Object, at(t, result, object.GetKind(), object.GetName()))
				}
			}
			if c.kind != "Service" && !strings.Contains(result.Manifest, "# a comment\napiVersion: v1\nkind: Service") {
				t.Errorf("the text of an object changed that no patch is for:\n%s", result.Manifest)
			}
		})
	}
}

func TestPatchesComeInOrder(t *testing.T) {
	result, err := rendering.NewRenderer(t).Chart(t.Context(), patched(
		to(addonsv1.PatchTarget{Kind: "Deployment"}, "metadata: {labels: {tier: front}}"),
		to(addonsv1.PatchTarget{LabelSelector: "tier=front"}, "spec: {replicas: 2}"),
		to(addonsv1.PatchTarget{LabelSelector: "tier"}, "[{op: replace, path: /spec/replicas, value: 4}]"),
		addonsv1.Patch{Patch: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: kube-system}\nspec: {paused: true}\n"},
	))
	must.Succeed(t, err)
	must.Equal[any](t, int64(4), at(t, result, "Deployment", "web", "spec", "replicas"), "replicas")
	if !strings.Contains(result.Manifest, "replicas: 4") || !strings.Contains(result.Manifest, "paused: true") || !strings.Contains(result.Manifest, "type: NodePort") {
		t.Errorf("the manifest isn't patched:\n%s", result.Manifest)
	}
}

func TestPatchesThatFail(t *testing.T) {
	deploy := addonsv1.PatchTarget{Kind: "Deployment"}
	cases := map[string]struct {
		patch addonsv1.Patch
		early bool // seen without the objects
		says  []string
	}{
		"a target that matches nothing": {to(addonsv1.PatchTarget{Kind: "Deployment", Name: "we"}, "spec: {}"), false, []string{"patches[1]", `"kind":"Deployment","name":"we"`, "correct it, or take it out"}},
		"another namespace":             {to(addonsv1.PatchTarget{Kind: "Deployment", Namespace: "other"}, "spec: {}"), false, []string{"patches[1]", `"namespace":"other"`}},
		"a namespace of what has none":  {to(addonsv1.PatchTarget{Kind: "ClusterRole", Namespace: ".+"}, "rules: []"), false, []string{"patches[1]", `"kind":"ClusterRole","namespace":".+"`}},
		"an object that isn't there":    {addonsv1.Patch{Patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: nope}}"}, false, []string{"patches[1]", `"version":"v1","kind":"Deployment","name":"nope"`, "correct it, or take it out"}},
		"an old version":                {addonsv1.Patch{Patch: "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web}}"}, false, []string{"patches[1]", `"version":"v1beta1","kind":"Deployment","name":"web"`}},
		"a path that isn't there":       {to(deploy, "[{op: replace, path: /spec/x/y, value: 1}]"), false, []string{"patches[1] can't be applied to Deployment web", "/spec/x/y"}},
		"a test that fails":             {to(deploy, "[{op: test, path: /spec/replicas, value: 2}]"), false, []string{"patches[1]", "/spec/replicas"}},
		"a name that goes":              {to(deploy, "[{op: remove, path: /metadata/name}]"), false, []string{"patches[1]", "without metadata.name"}},
		"labels that are numbers":       {to(deploy, "metadata: {labels: {b: true, a: 1, c: x}}"), false, []string{"patches[1]", "metadata.labels[a] is no string"}},
		"an index far away":             {to(deploy, "[{op: add, path: /spec/template/spec/containers/1000000000, value: 1}]"), false, []string{"patches[1]"}},
		"text":                          {addonsv1.Patch{Patch: "text"}, true, []string{"patches[1].patch", "neither"}},
		"nothing but a comment":         {addonsv1.Patch{Patch: "# text"}, true, []string{"patches[1].patch", "neither"}},
		"no YAML":                       {addonsv1.Patch{Patch: "a: ["}, true, []string{"patches[1].patch", "yaml"}},
		"operations without a target":   {addonsv1.Patch{Patch: "[{op: remove, path: /a}]"}, true, []string{"patches[1].target"}},
		"no operations":                 {to(deploy, "[]"), true, []string{"no operations"}},
		"no such operation":             {to(deploy, "[{op: set, path: /a, value: 1}]"), true, []string{"operation 0", `"set"`}},
		"an operation without a value":  {to(deploy, "[{op: remove, path: /a}, {op: add, path: /a}]"), true, []string{"operation 1", "value"}},
		"an operation without a path":   {to(deploy, "[{op: remove}]"), true, []string{"operation 0", "path"}},
		"a path without a slash":        {to(deploy, "[{op: remove, path: a}]"), true, []string{"operation 0", "path"}},
		"a copy from nowhere":           {to(deploy, "[{op: copy, path: /a}]"), true, []string{"operation 0", "from"}},
		"null among operations":         {to(deploy, "[{op: remove, path: /a}, null]"), true, []string{"operation 1"}},
		"a list of texts":               {to(deploy, "[a, b]"), true, []string{"patches[1].patch", "operations"}},
		"a patch that names nothing":    {addonsv1.Patch{Patch: "spec: {replicas: 1}"}, true, []string{"patches[1].patch", "metadata.name"}},
		"metadata that is a list":       {addonsv1.Patch{Patch: "apiVersion: v1\nkind: Service\nmetadata: [web]"}, true, []string{"patches[1].patch", "metadata.name"}},
		"two documents with a target":   {to(deploy, "spec: {}\n---\nspec: {}"), true, []string{"patches[1].patch", "one document"}},
		"operations, and more of them":  {to(deploy, "[{op: remove, path: /spec/replicas}]\n---\n[{op: remove, path: /spec/paused}]\n"), true, []string{"patches[1].patch", "one document"}},
		"a document behind an end":      {to(deploy, "spec: {}\n...\nspec: {}\n"), true, []string{"patches[1].patch", "more follows the end"}},
		"a map, and a text":             {addonsv1.Patch{Patch: rendering.WebService + "---\ntext"}, true, []string{"patches[1].patch", "neither"}},
		"the same kind in other group":  {addonsv1.Patch{Patch: "{apiVersion: v1, kind: Widget, metadata: {name: w}}"}, false, []string{"patches[1]", "fits none"}},
		"a name that is no expression":  {to(addonsv1.PatchTarget{Name: "a("}, "spec: {}"), true, []string{"patches[1].target.name"}},
		"a namespace that is none":      {to(addonsv1.PatchTarget{Namespace: "a{2,1}"}, "spec: {}"), true, []string{"patches[1].target.namespace"}},
		"a selector that is none":       {to(addonsv1.PatchTarget{LabelSelector: "a=b=c"}, "spec: {}"), true, []string{"patches[1].target.labelSelector"}},
		"deep nesting":                  {to(deploy, "a: "+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), true, []string{"patches[1].patch"}},
	}
	r := rendering.NewRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			early := patch.Check(&c.patch, field.NewPath("patches").Index(1))
			if (early != nil) != c.early {
				t.Errorf("without the objects: %v", early)
			}
			_, err := r.Chart(t.Context(), patched(to(deploy, "metadata: {annotations: {a: b}}"), c.patch))
			rendering.WantReason(t, err, job.ReasonPatchFailed, c.says...)
			t.Log(err)
		})
	}
}

// A patch that names its object is for one; its namespace tells which.
func TestPatchesThatNameOneOfSeveral(t *testing.T) {
	const patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%s}\ndata: {a: b}\n"
	files := map[string]string{"x.yaml": rendering.ConfigMap, "y.yaml": strings.Replace(rendering.ConfigMap, "name: a", "name: a, namespace: other", 1)}
	r := rendering.NewRenderer(t)
	_, err := r.Files(t.Context(), rendering.FilesJob("", files, addonsv1.Patch{Patch: fmt.Sprintf(patch, "")}))
	rendering.WantReason(t, err, job.ReasonPatchFailed, "patches[0] fits several", `"kind":"ConfigMap","name":"a"`, "set metadata.namespace in it, or target beside it")
	for i, namespace := range []string{"apps", "other"} { // the first one goes to the add-on's
		result, err := r.Files(t.Context(), rendering.FilesJob("", files, addonsv1.Patch{Patch: fmt.Sprintf(patch, ", namespace: "+namespace)}))
		must.Succeed(t, err)
		for j, object := range result.Objects {
			if _, has := object.Object["data"]; has != (i == j) {
				t.Errorf("namespace %s: object %d is patched: %v", namespace, j, has)
			}
		}
	}
}

// A patch that grows what it is for meets the limits that charts have.
func TestPatchBombs(t *testing.T) {
	long.InCI(t)
	var bomb strings.Builder
	bomb.WriteString("- {op: add, path: /metadata/x, value: {a: b}}\n")
	for i := range 40 {
		fmt.Fprintf(&bomb, "- {op: copy, from: /metadata/x, path: /metadata/x/a%d}\n", i)
	}
	aliases := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
	r := rendering.NewRenderer(t)
	for name, text := range map[string]string{"copies": bomb.String(), "aliases": aliases, "an alias in itself": "spec: &a {b: *a}"} {
		growing := to(addonsv1.PatchTarget{Kind: "Deployment"}, text)
		if err := patch.Check(&growing, field.NewPath("patch")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := r.Chart(t.Context(), patched(growing))
		if err == nil {
			t.Errorf("%s: it was applied", name)
		}
		t.Log(err)
	}
}

func FuzzPatch(f *testing.F) {
	for _, seed := range []string{"a: b", "[{op: remove, path: /metadata}]", "$patch: delete", "spec: {template: {spec: {containers: [{$patch: delete, name: web}]}}}", "metadata: null", "- {op: move, from: /a, path: /a/b}", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\n", "spec: &a {b: *a}", "{spec: {$setElementOrder/a: [1]}}", "spec: {$retainKeys: [a]}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "*") {
			return // an alias in itself ends the process: workers alone read those
		}
		reader := &manifest.Reader{Limits: job.MostMade, Namespace: "apps"}
		var documents []manifest.Document
		for _, object := range []string{rendering.Deployment, rendering.WebService} {
			document, err := reader.Decode("a.yaml", object)
			must.Succeed(t, err)
			documents = append(documents, document)
		}
		for _, target := range []*addonsv1.PatchTarget{nil, {Kind: "Deployment"}} {
			var err error
			if documents, _, err = patch.Apply(reader, job.Edits{Patches: []addonsv1.Patch{{Target: target, Patch: text}}}, documents, nil, func(job.Stage) {}); err != nil {
				return
			}
			if err := reader.CollectInto(&job.Result{}, documents); err != nil {
				return
			}
		}
	})
}
