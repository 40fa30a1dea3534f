// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func base() map[string]string {
	return map[string]string{
		"base/kustomization.yaml": "resources: [deployment.yaml, service.yaml]\n",
		"base/deployment.yaml":    rendering.Deployment,
		"base/service.yaml":       rendering.WebService,
		"overlays/prod/kustomization.yaml": `resources: [../../base]
components: [../../components/labels]
namePrefix: prod-
patches:
- path: replicas.yaml
images: [{name: nginx, newTag: "1.28"}]
configMapGenerator:
- name: settings
  files: [settings.txt, other=more/settings.txt]
  envs: [settings.env]
secretGenerator:
- name: token
  literals: [token=s3cr3t]
`,
		"overlays/prod/replicas.yaml":          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
		"overlays/prod/settings.txt":           "some settings\n",
		"overlays/prod/more/settings.txt":      "other settings\n",
		"overlays/prod/settings.env":           "LEVEL=debug\n",
		"components/labels/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {team: a}}]\n",
	}
}

func TestKustomization(t *testing.T) {
	r := rendering.NewRenderer(t)
	result, err := r.Files(t.Context(), rendering.KustomizationJob("overlays/prod", base()))
	must.Succeed(t, err)
	got := rendering.Named(result)
	for i, name := range got {
		if strings.Contains(name, "settings-") || strings.Contains(name, "token-") {
			got[i] = name[:strings.LastIndex(name, "-")] // the hash of the content
		}
	}
	want := []string{"Secret /prod-token", "ConfigMap /prod-settings", "Service /prod-web", "Deployment /prod-web"}
	must.Equal(t, want, got)
	data := result.Objects[1].Object["data"]
	must.Equal[any](t, map[string]any{"settings.txt": "some settings\n", "other": "other settings\n", "LEVEL": "debug"}, data)
	for _, part := range []string{"# Source: overlays/prod/kustomization.yaml", "replicas: 3", "image: nginx:1.28", "team: a", `value: "yes"`} {
		if !strings.Contains(result.Manifest, part) {
			t.Errorf("the manifest lacks %q:\n%s", part, result.Manifest)
		}
	}
	if result.Name != "web" || result.Version != "sha256-0123456789ab" || !strings.Contains(string(result.Chart), `"name":"web"`) {
		t.Errorf("name %s, version %s, chart %s", result.Name, result.Version, result.Chart)
	}
	for range 3 { // each time the same, in whatever worker
		again, err := r.Files(t.Context(), rendering.KustomizationJob("overlays/prod", base()))
		must.Succeed(t, err)
		if diff := cmp.Diff(result, again); diff != "" {
			t.Fatal(diff)
		}
	}
}

// A schema that one kustomization brings must not be there for the next one.
func TestKustomizationSchemaStaysItsOwn(t *testing.T) {
	const widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {parts: [{name: x, size: 1}, {name: y, size: 2}]}\n"
	const change = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {parts: [{name: y, size: 3}]}\n"
	schema := `{"definitions": {"v1.Widget": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "example.org", "version": "v1", "kind": "Widget"}],
		"properties": {"spec": {"type": "object", "properties": {"parts": {"type": "array",
			"items": {"type": "object"}, "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"}}}}}}}`
	plain := map[string]string{"kustomization.yaml": "resources: [widget.yaml]\npatches: [{path: change.yaml}]\n", "widget.yaml": widget, "change.yaml": change}
	own := map[string]string{"kustomization.yaml": plain["kustomization.yaml"] + "openapi: {path: schema.json}\n", "schema.json": schema, "widget.yaml": widget, "change.yaml": change}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	for i, step := range []struct {
		files map[string]string
		parts int
	}{{plain, 1}, {own, 2}, {plain, 1}, {own, 2}, {plain, 1}} {
		result, err := r.Files(t.Context(), rendering.KustomizationJob("", step.files))
		must.Succeed(t, err)
		parts := result.Objects[0].Object["spec"].(map[string]any)["parts"].([]any)
		if len(parts) != step.parts {
			t.Errorf("build %d: %d parts, want %d: %v", i, len(parts), step.parts, parts)
		}
	}
}

func TestKustomizationRefusals(t *testing.T) {
	with := func(kustomization string, more ...string) map[string]string {
		files := map[string]string{"kustomization.yaml": kustomization, "cm.yaml": rendering.ConfigMap}
		for i := 0; i+1 < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	const host = "nothing is read from outside of the artifact; put it into the artifact"
	cases := map[string]struct {
		directory string
		files     map[string]string
		says      []string
	}{
		"a file on another host":      {"", with("resources: [cm.yaml, 'https://user:pass@example.org/a.yaml?token=abcdef']"), []string{"kustomization.yaml: resources", host}},
		"a scheme in capitals":        {"", with("resources: ['HTTPS://example.org/a.yaml']"), []string{"kustomization.yaml: resources", host}},
		"an address without slashes":  {"", with("resources: ['https:a.yaml']", "https:a.yaml", rendering.ConfigMap), []string{"kustomization.yaml: resources", host}},
		"a repository on GitHub":      {"", with("resources: ['github.com/org/repo//base?ref=main']"), []string{"kustomization.yaml: resources", host}},
		"a repository by SSH":         {"", with("bases: ['git@example.org:org/repo.git']"), []string{"kustomization.yaml: bases", host}},
		"a forced git address":        {"", with("components: ['git::https://example.org/x']"), []string{"components", host}},
		"a file scheme":               {"", with("resources: ['file:///etc/passwd']"), []string{"kustomization.yaml: resources", host}},
		"a remote base of a base":     {"", with("resources: [b]", "b/kustomization.yaml", "resources: ['https://example.org/x']"), []string{"b/kustomization.yaml: resources", host}},
		"a remote patch":              {"", with("resources: [cm.yaml]\npatches: [{path: 'https://example.org/p.yaml'}]"), []string{"patches", host}},
		"a remote file of a Secret":   {"", with("secretGenerator: [{name: a, files: ['k=https://example.org/s?a=b']}]"), []string{"secretGenerator", host}},
		"a remote env file":           {"", with("configMapGenerator: [{name: a, env: 'http://example.org/s'}]"), []string{"configMapGenerator", host}},
		"a remote generator":          {"", with("generators: ['https://example.org/g.yaml']"), []string{"generators", host}},
		"a remote schema":             {"", with("resources: [cm.yaml]\nopenapi: {path: 'https://example.org/s.json'}"), []string{"openapi.path", host}},
		"a remote configuration":      {"", with("resources: [cm.yaml]\nconfigurations: ['https://example.org/s.json']"), []string{"configurations", host}},
		"a remote replacement":        {"", with("resources: [cm.yaml]\nreplacements: [{path: 'https://example.org/s.json'}]"), []string{"replacements", host}},
		"a remote file of a built-in": {"", with("resources: [cm.yaml]\ntransformers: [t.yaml]", "t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: https://example.org/p.yaml\n"), []string{"kustomization.yaml", host}},

		"a file above the artifact":         {"", with("resources: [../cm.yaml]"), []string{"kustomization.yaml: ", "'../cm.yaml'", "'/cm.yaml' doesn't exist"}},
		"a base above the artifact":         {"a/b", with("", "a/b/kustomization.yaml", "resources: [../../../../../base]"), []string{"a/b/kustomization.yaml: ", "'../../../../../base'", "'/base' doesn't exist"}},
		"an absolute file":                  {"", with("resources: [/cm.yaml]"), []string{"'/cm.yaml' doesn't exist"}},
		"an absolute file of a generator":   {"", with("configMapGenerator: [{name: a, files: [/etc/passwd]}]"), []string{"'/etc/passwd' doesn't exist"}},
		"a file beside the kustomization":   {"a", with("", "a/kustomization.yaml", "resources: [../cm.yaml]"), []string{"a/kustomization.yaml: ", "file '/artifact/cm.yaml' is not in or below '/artifact/a'"}},
		"a file of a base by a built-in":    {"a", with("", "a/kustomization.yaml", "resources: [c.yaml]\ntransformers: [t.yaml]", "a/c.yaml", rendering.ConfigMap, "a/t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: ../../../cm.yaml\n"), []string{"/cm.yaml"}},
		"a directory out of the artifact":   {"../x", with("resources: [cm.yaml]"), []string{"directory ../x of the artifact has no kustomization.yaml"}},
		"a file that isn't there":           {"", with("resources: [none.yaml]"), []string{"kustomization.yaml: ", "'/artifact/none.yaml' doesn't exist"}},
		"a base without a kustomization":    {"", with("resources: [b]", "b/x.yaml", rendering.ConfigMap), []string{"kustomization.yaml: ", "unable to find one of 'kustomization.yaml'", "'/artifact/b'"}},
		"no kustomization":                  {"", map[string]string{"web-1/kustomization.yaml": "", "x/y/Kustomization": ""}, []string{"the artifact's root has no kustomization.yaml", "set kustomization.directory to web-1 or x/y"}},
		"no kustomization at all":           {"z", map[string]string{"a.yaml": rendering.ConfigMap}, []string{"directory z of the artifact has no kustomization.yaml"}},
		"two kustomizations":                {"", with("resources: [cm.yaml]", "kustomization.yml", ""), []string{"multiple kustomization files under: /artifact"}},
		"itself":                            {"", with("resources: [.]"), []string{"kustomization.yaml: ", "cycle detected"}},
		"a cycle":                           {"a", with("", "a/kustomization.yaml", "resources: [../b]", "b/kustomization.yaml", "resources: [../a]"), []string{"a/kustomization.yaml: ", "cycle detected", "'/artifact/a'"}},
		"a base above":                      {"a/b", with("resources: [cm.yaml]", "a/b/kustomization.yaml", "resources: [../..]"), []string{"cycle detected"}},
		"an empty kustomization":            {"", with(""), []string{"kustomization.yaml is empty"}},
		"an unknown field":                  {"", with("resource: [cm.yaml]"), []string{"kustomization.yaml", "resource"}},
		"no YAML":                           {"", with("a: ["), []string{"kustomization.yaml", "yaml"}},
		"another kind":                      {"", with("kind: Pod\nresources: [cm.yaml]"), []string{"kustomization.yaml: ", "kind should be"}},
		"a chart":                           {"", with("helmCharts: [{name: x, repo: 'https://example.org'}]"), []string{"kustomization.yaml: charts inside", "add-on of its own"}},
		"a chart of old":                    {"", with("helmChartInflationGenerator: [{chartName: x}]"), []string{"kustomization.yaml: charts inside", "add-on of its own"}},
		"a chart by a generator":            {"", with("generators: [g.yaml]", "g.yaml", "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: x\n"), []string{"kustomization.yaml: charts inside", "add-on of its own"}},
		"an exec plugin":                    {"", with("generators: [g.yaml]", "g.yaml", "apiVersion: example.org/v1\nkind: Run\nmetadata: {name: a, annotations: {config.kubernetes.io/function: '{exec: {path: /bin/sh}}'}}\n"), []string{"generator", "plugins disabled", "'Run'"}},
		"a starlark function in the text":   {"", with("resources: [cm.yaml]\ntransformers:\n- |\n  apiVersion: example.org/v1\n  kind: Run\n  metadata: {name: a, annotations: {config.kubernetes.io/function: '{starlark: {path: x.star}}'}}\n"), []string{"plugins disabled", "'Run'"}},
		"a container as validator":          {"", with("resources: [cm.yaml]\nvalidators: [v]", "v/kustomization.yaml", "resources: [g.yaml]", "v/g.yaml", "apiVersion: example.org/v1\nkind: Run\nmetadata: {name: a, annotations: {config.kubernetes.io/function: '{container: {image: x}}'}}\n"), []string{"plugins disabled", "'Run'"}},
		"a resource that is none":           {"", with("resources: [x.txt]", "x.txt", "hello"), []string{"x.txt"}},
		"one object twice":                  {"", with("resources: [cm.yaml, d.yaml]", "d.yaml", rendering.ConfigMap), []string{"d.yaml", "ConfigMap"}},
		"a patch for nothing":               {"", with("resources: [cm.yaml]\npatches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: hush}, data: {a: c2VjcmV0}}'}]"), []string{"no resource matches", "hush"}},
		"a patch of another kustomization":  {"", with("resources: [cm.yaml]\nreplacements: [{source: {kind: Nope}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]}]"), []string{"Nope"}},
		"a literal of a Secret":             {"", with("secretGenerator: [{name: a, literals: [hidden-literal]}]"), []string{"kustomization.yaml: ", "[hidden]", "expected key=value"}},
		"an object without a name":          {"", with("resources: [x.yaml]", "x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}\n"), []string{"name"}},
		"nothing but local objects":         {"", with("resources: [x.yaml]", "x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {config.kubernetes.io/local-config: 'true'}}\n"), []string{"kustomization.yaml makes no objects"}},
		"a kustomization's file as a base":  {"", with("resources: [b/kustomization.yaml]", "b/kustomization.yaml", "resources: [x.yaml]"), []string{"b/kustomization.yaml"}},
		"a component that is a file":        {"", with("components: [cm.yaml]"), []string{"'/artifact/cm.yaml'", "not directory"}},
		"a directory in place of a patch":   {"", with("resources: [cm.yaml]\npatches: [{path: d}]", "d/x.yaml", rendering.ConfigMap), []string{"'/artifact/d' must resolve to a file"}},
		"objects behind the end of one":     {"", with("resources: [d.yaml]", "d.yaml", "---\n"+rendering.WebService+"---\n"+rendering.ConfigMap+"...\n"+rendering.Deployment), []string{"kustomization.yaml: resources", "d.yaml", "more follows the end"}},
		"an object in the last line":        {"", with("resources: [d.yaml]", "d.yaml", rendering.WebService+"--- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"), []string{"kustomization.yaml: resources", "d.yaml", "more follows the end"}},
		"lines that end in CR":              {"", with("resources: [d.yaml]", "d.yaml", strings.ReplaceAll(rendering.WebService+"---\n"+rendering.ConfigMap, "\n", "\r")), []string{"kustomization.yaml: resources", "d.yaml", "more follows the end"}},
		"a patch behind the end of one":     {"", with("resources: [cm.yaml]\npatches: [{path: p.yaml}]", "p.yaml", rendering.ConfigMap+"...\n"+rendering.ConfigMap), []string{"kustomization.yaml: patches", "p.yaml", "more follows the end"}},
		"a patch in place behind an end":    {"", with("resources: [cm.yaml]\npatchesStrategicMerge:\n- |\n  apiVersion: v1\n  data: {a: c2VjcmV0}\n  ...\n  a: b\n"), []string{"kustomization.yaml: patchesStrategicMerge: more follows the end"}},
		"the rest of the kustomization":     {"", with("namePrefix: a-\n...\nresources: [cm.yaml]\n"), []string{"kustomization.yaml: more follows the end"}},
		"a version of a schema that's gone": {"", with("resources: [cm.yaml]\nopenapi: {version: v9.9.9}"), []string{"OpenAPI version"}},
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 10 * time.Second })
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := r.Files(t.Context(), rendering.KustomizationJob(c.directory, c.files))
			rendering.WantReason(t, err, job.ReasonKustomizationInvalid, c.says...)
			for _, secret := range []string{"user:pass", "abcdef", "c2VjcmV0", "hidden-literal", "/tmp"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q shows %q", err, secret)
				}
			}
			t.Log(err)
		})
	}
}

// TestKustomizationBesideOtherNames builds a kustomization beside files whose names kustomize can't read.
func TestKustomizationBesideOtherNames(t *testing.T) {
	with := func(resource string) error {
		_, err := rendering.NewRenderer(t).Files(t.Context(), job.Files{Kustomization: true, Files: []artifact.File{
			{Name: "kustomization.yaml", Data: []byte("resources: [\"" + resource + "\"]\n")},
			{Name: "a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
			{Name: "docs/read me.md", Data: []byte("{}")}, {Name: "logo@2x.png", Data: []byte("{}")}, {Name: "Übersicht.md", Data: []byte("{}")},
			{Name: "components/high-availability-1.21+/kustomization.yaml", Data: []byte("resources: []\n")},
		}})
		return err
	}
	if err := with("a.yaml"); err != nil {
		t.Error(err)
	}
	for _, named := range []string{"docs/read me.md", "components/high-availability-1.21+"} {
		if err := with(named); err == nil || !strings.Contains(err.Error(), named) || !strings.Contains(err.Error(), "rename") {
			t.Errorf("%s: %v", named, err)
		}
	}
}
