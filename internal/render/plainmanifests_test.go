// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestManifests(t *testing.T) {
	files := map[string]string{
		"README.md":             "# no manifest",
		".github/workflow.yaml": "on: push\n",
		"web/._b.yaml":          "\x00\x05",
		"web/b.yaml":            "\xEF\xBB\xBF---\n# comment\n---\n" + webService + "---\n" + deployment,
		"web/more/a.yml":        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: other}}\n",
		"web/job.json":          "{\n\t\"apiVersion\": \"batch/v1\", \"kind\": \"Job\",\n\t\"metadata\": {\"name\": \"job\", \"annotations\": {\"helm.sh/hook\": \"pre-install\"}}}\n",
		"other/kustomization":   "no manifest",
	}
	r := newRenderer(t)
	result, err := r.Manifests(t.Context(), filesRequest("web", files,
		addonsv1.Patch{Target: &addonsv1.PatchTarget{Kind: "Deployment"}, Patch: "spec: {replicas: 2}"},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap /one", "ConfigMap other/two", "Service /web", "Deployment /web", "Job /job"}
	if diff := cmp.Diff(want, named(result)); diff != "" {
		t.Error(diff)
	}
	if len(result.Hooks) > 0 || len(result.CRDs) > 0 {
		t.Errorf("hooks %v, CRDs %v", result.Hooks, result.CRDs)
	}
	for _, part := range []string{"# Source: web/b.yaml\n", "replicas: 2"} {
		if !strings.Contains(result.Manifest, part) {
			t.Errorf("the manifest lacks %q:\n%s", part, result.Manifest)
		}
	}
	// The root has all of them.
	if result, err = r.Manifests(t.Context(), filesRequest("", files)); err != nil || len(result.Objects) != 5 {
		t.Errorf("%v, %v", result, err)
	}
}

func TestManifestsRefusals(t *testing.T) {
	cases := map[string]struct {
		directory string
		files     map[string]string
		reason    string
		says      []string
	}{
		"no manifests":          {"", map[string]string{"a.txt": "x"}, ReasonManifestInvalid, []string{"the artifact's root has no objects", ".yaml, .yml or .json"}},
		"another directory":     {"b", map[string]string{"a/x.yaml": configMap}, ReasonManifestInvalid, []string{"directory b of the artifact has no objects", "set manifests.directory to a"}},
		"a prefix of a name":    {"a", map[string]string{"ab/x.yaml": configMap}, ReasonManifestInvalid, []string{"has no objects"}},
		"a kustomization":       {"", map[string]string{"x.yaml": configMap, "kustomization.yaml": "resources: [x.yaml]"}, ReasonManifestInvalid, []string{"kustomization.yaml is a kustomization"}},
		"values of a chart":     {"", map[string]string{"x.yaml": configMap, "values.yaml": "a: 1\n"}, ReasonManifestInvalid, []string{"values.yaml", "apiVersion is missing"}},
		"one object twice":      {"", map[string]string{"x.yaml": configMap, "y.yaml": strings.Replace(configMap, "name: a", "name: a, namespace: apps", 1)}, ReasonManifestInvalid, []string{"ConfigMap a is in x.yaml and in y.yaml"}},
		"no YAML":               {"", map[string]string{"x.yaml": "a: ["}, ReasonManifestInvalid, []string{"x.yaml", "yaml"}},
		"no JSON":               {"", map[string]string{"x.json": "{"}, ReasonManifestInvalid, []string{"x.json"}},
		"a key twice":           {"", map[string]string{"x.yaml": configMap + "kind: Secret\n"}, ReasonManifestInvalid, []string{"x.yaml", "kind"}},
		"no name":               {"", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, ReasonManifestInvalid, []string{"x.yaml", "metadata.name"}},
		"20 MB":                 {"", map[string]string{"x.yaml": configMap + "data: {a: " + strings.Repeat("x", 20<<20) + "}"}, ReasonOutputTooLarge, nil},
		"a patch that is none":  {"", map[string]string{"x.yaml": configMap}, ReasonPatchFailed, []string{"patches[0].patch"}},
		"6000 objects":          {"", map[string]string{"x.yaml": "kind: List\napiVersion: v1\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", 6000)}, ReasonOutputTooLarge, nil},
		"aliases that multiply": {"", map[string]string{"x.yaml": configMap + "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"}, ReasonManifestInvalid, []string{"x.yaml", "aliasing"}},
	}
	r := newRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := filesRequest(c.directory, c.files)
			if c.reason == ReasonPatchFailed {
				req.Patches = []addonsv1.Patch{{Patch: "text"}}
			}
			_, err := r.Manifests(t.Context(), req)
			wantReason(t, err, c.reason, c.says...)
			t.Log(err)
		})
	}
}
