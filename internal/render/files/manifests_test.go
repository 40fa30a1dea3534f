// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func TestManifests(t *testing.T) {
	files := map[string]string{
		"README.md":             "# no manifest",
		".github/workflow.yaml": "on: push\n",
		"web/._b.yaml":          "\x00\x05",
		"web/b.yaml":            "\xEF\xBB\xBF---\n# comment\n---\n" + rendering.WebService + "---\n" + rendering.Deployment,
		"web/more/a.yml":        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: other}}\n",
		"web/job.json":          "{\n\t\"apiVersion\": \"batch/v1\", \"kind\": \"Job\",\n\t\"metadata\": {\"name\": \"job\", \"annotations\": {\"helm.sh/hook\": \"pre-install\"}}}\n",
		"other/kustomization":   "no manifest",
	}
	r := rendering.NewRenderer(t)
	result, err := r.Files(t.Context(), rendering.FilesJob("web", files,
		addonsv1.Patch{Target: &addonsv1.PatchTarget{Kind: "Deployment"}, Patch: "spec: {replicas: 2}"},
	))
	must.Succeed(t, err)
	want := []string{"ConfigMap /one", "ConfigMap other/two", "Service /web", "Deployment /web", "Job /job"}
	must.Equal(t, want, rendering.Named(result))
	if len(result.Hooks) > 0 || len(result.CRDs) > 0 {
		t.Errorf("hooks %v, CRDs %v", result.Hooks, result.CRDs)
	}
	for _, part := range []string{"# Source: web/b.yaml\n", "replicas: 2"} {
		if !strings.Contains(result.Manifest, part) {
			t.Errorf("the manifest lacks %q:\n%s", part, result.Manifest)
		}
	}
	// The root has all of them.
	if result, err = r.Files(t.Context(), rendering.FilesJob("", files)); err != nil || len(result.Objects) != 5 {
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
		"no manifests":          {"", map[string]string{"a.txt": "x"}, job.ReasonManifestInvalid, []string{"the artifact's root has no objects", ".yaml, .yml or .json"}},
		"another directory":     {"b", map[string]string{"a/x.yaml": rendering.ConfigMap}, job.ReasonManifestInvalid, []string{"directory b of the artifact has no objects", "set manifests.directory to a"}},
		"a prefix of a name":    {"a", map[string]string{"ab/x.yaml": rendering.ConfigMap}, job.ReasonManifestInvalid, []string{"has no objects"}},
		"a kustomization":       {"", map[string]string{"x.yaml": rendering.ConfigMap, "kustomization.yaml": "resources: [x.yaml]"}, job.ReasonManifestInvalid, []string{"kustomization.yaml is a kustomization"}},
		"values of a chart":     {"", map[string]string{"x.yaml": rendering.ConfigMap, "values.yaml": "a: 1\n"}, job.ReasonManifestInvalid, []string{"values.yaml", "apiVersion is missing"}},
		"one object twice":      {"", map[string]string{"x.yaml": rendering.ConfigMap, "y.yaml": strings.Replace(rendering.ConfigMap, "name: a", "name: a, namespace: apps", 1)}, job.ReasonManifestInvalid, []string{"ConfigMap a is in x.yaml and in y.yaml"}},
		"no YAML":               {"", map[string]string{"x.yaml": "a: ["}, job.ReasonManifestInvalid, []string{"x.yaml", "yaml"}},
		"no JSON":               {"", map[string]string{"x.json": "{"}, job.ReasonManifestInvalid, []string{"x.json"}},
		"a key twice in JSON":   {"", map[string]string{"x.json": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "k\u0069nd": "ConfigMap"}`}, job.ReasonManifestInvalid, []string{"x.json", "kind"}},
		"deep JSON":             {"", map[string]string{"x.json": `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}"}, job.ReasonManifestInvalid, []string{"x.json: nested deeper than 500"}},
		"JSON out of range":     {"", map[string]string{"x.json": `{"a": 1e400}`}, job.ReasonManifestInvalid, []string{"x.json", "1e400"}},
		"JSON in Latin-1":       {"", map[string]string{"x.json": "{\"a\": \"\xe4\"}"}, job.ReasonManifestInvalid, []string{"x.json: it isn't UTF-8"}},
		"behind the end":        {"", map[string]string{"x.yaml": rendering.ConfigMap + "...\n" + rendering.WebService}, job.ReasonManifestInvalid, []string{"x.yaml: more follows the end", "a line of \"---\""}},
		"behind an end in text": {"", map[string]string{"x.yaml": rendering.ConfigMap + "data:\n  a: |\n    b\n...\nmore\n"}, job.ReasonManifestInvalid, []string{"x.yaml: more follows the end"}},
		"lines that end in CR":  {"", map[string]string{"x.yaml": strings.ReplaceAll(rendering.ConfigMap+"---\n"+rendering.WebService, "\n", "\r")}, job.ReasonManifestInvalid, []string{"x.yaml: more follows the end", "line feed"}},
		"twice in one file":     {"", map[string]string{"x.yaml": rendering.ConfigMap + "---\n" + rendering.ConfigMap}, job.ReasonManifestInvalid, []string{"ConfigMap a is more than once in x.yaml; keep one"}},
		"only an empty list":    {"", map[string]string{"x.yaml": "apiVersion: v1\nkind: List\nitems:\n"}, job.ReasonManifestInvalid, []string{"has no objects"}},
		"a key twice":           {"", map[string]string{"x.yaml": rendering.ConfigMap + "kind: Secret\n"}, job.ReasonManifestInvalid, []string{"x.yaml", "kind"}},
		"no name":               {"", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, job.ReasonManifestInvalid, []string{"x.yaml", "metadata.name"}},
		"20 MB":                 {"", map[string]string{"x.yaml": rendering.ConfigMap + "data: {a: " + strings.Repeat("x", 20<<20) + "}"}, job.ReasonOutputTooLarge, nil},
		"a patch that is none":  {"", map[string]string{"x.yaml": rendering.ConfigMap}, job.ReasonPatchFailed, []string{"patches[0].patch"}},
		"6000 objects":          {"", map[string]string{"x.yaml": "kind: List\napiVersion: v1\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", 6000)}, job.ReasonOutputTooLarge, nil},
		"aliases that multiply": {"", map[string]string{"x.yaml": rendering.ConfigMap + "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"}, job.ReasonManifestInvalid, []string{"x.yaml", "more than 300000 values"}},
	}
	r := rendering.NewRenderer(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := rendering.FilesJob(c.directory, c.files)
			if c.reason == job.ReasonPatchFailed {
				req.Patches = []addonsv1.Patch{{Patch: "text"}}
			}
			_, err := r.Files(t.Context(), req)
			rendering.WantReason(t, err, c.reason, c.says...)
			t.Log(err)
		})
	}
}

// JSON that YAML's parser doesn't take, or reads as something else.
func TestManifestsInJSON(t *testing.T) {
	r := rendering.NewRenderer(t)
	wide := "{\n\t\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}, \"data\": {" +
		`"slash": "a\/b", "face": "\ud83d\ude00", "raw": "😀", "del": "` + "\x7f" + `", "escaped": "\u007f\u0085\ufeff\u2028", "nul": "\u0000",` +
		`"lines": "\n--- \n...\n", "words": "yes", "html": "<&>"},` +
		`"large": 9007199254740993, "float": 1.5, "exponent": 1e3, "beyond": 1e21}` + "\n"
	want := map[string]any{
		"slash": "a/b", "face": "😀", "raw": "😀", "del": "\x7f", "escaped": "\x7f\u0085\ufeff\u2028", "nul": "\x00",
		"lines": "\n--- \n...\n", "words": "yes", "html": "<&>",
	}
	for name, files := range map[string]map[string]string{
		"a file":            {"a.json": wide},
		"with a byte mark":  {"a.json": "\xEF\xBB\xBF" + wide},
		"by another name":   {"a.yaml": wide},
		"and YAML beside":   {"a.json": wide, "b.yaml": "# nothing\n"},
		"changed by a path": {"a.json": wide},
		"in a list":         {"a.json": `{"apiVersion": "v1", "kind": "List", "items": [` + wide + "]}"},
	} {
		t.Run(name, func(t *testing.T) {
			req := rendering.FilesJob("", files)
			if name == "changed by a path" || name == "in a list" {
				req.Patches = []addonsv1.Patch{{Target: &addonsv1.PatchTarget{Kind: "ConfigMap"}, Patch: "metadata: {labels: {a: b}}"}}
			}
			result, err := r.Files(t.Context(), req)
			must.Succeed(t, err)
			recorded, err := record.ParseManifest(result.Manifest)
			if err != nil {
				t.Fatalf("%v in\n%s", err, result.Manifest)
			}
			must.Equal(t, result.Objects, recorded, "the record has others")
			must.Equal[any](t, want, result.Objects[0].Object["data"])
			for field, want := range map[string]any{"large": int64(9007199254740993), "float": 1.5, "exponent": int64(1000), "beyond": 1e21} {
				must.Equal(t, want, result.Objects[0].Object[field], field)
			}
		})
	}
}

func TestManifestsThatAreOneFile(t *testing.T) {
	const artifact = `ConfigMap team-a/quotas, key "e.yaml"`
	r := rendering.NewRenderer(t)
	for name, c := range map[string]struct{ file, text, says string }{
		"comments only": {"manifests.yaml", "# nothing\n", artifact + " has no objects"},
		"no object":     {"manifests.json", "[]", artifact + ": is no Kubernetes object"},
		"twice":         {"manifests.yaml", rendering.ConfigMap + "---\n" + rendering.ConfigMap, "ConfigMap a is more than once in " + artifact},
		"no name":       {"manifests.yaml", "apiVersion: v1\nkind: ConfigMap\n", artifact + ": ConfigMap without metadata"},
	} {
		req := rendering.FilesJob("", map[string]string{c.file: c.text})
		req.Single = artifact
		_, err := r.Files(t.Context(), req)
		rendering.WantReason(t, err, job.ReasonManifestInvalid, c.says)
		if strings.Contains(err.Error(), "manifests.") {
			t.Errorf("%s: %v names a file that nobody wrote", name, err)
		}
	}
}

// FuzzJSONAsYAML has the same in YAML as in JSON.
func FuzzJSONAsYAML(f *testing.F) {
	for _, seed := range []string{`{"a": "\/\ud83d\ude00\ud83d\u0000` + "\x7f\u0085" + `"}`, `[1, 1.0, -0, 1e400, 12345678901234567890]`, `{"a": 1, "\u0061": 2}`, `{"<<": {"a": "\\\""}}`, `"\ud83d"`, `[-0.0, {"a": -0e7}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || !utf8.Valid(data) {
			return
		}
		var want any
		err := utiljson.Unmarshal(data, &want)
		text, refused := strictyaml.FromJSON(data)
		if refused != nil {
			if err == nil && !strings.Contains(refused.Error(), "duplicate field") {
				t.Fatalf("%s: %v", data, refused)
			}
			return
		}
		reader := &manifest.Reader{Limits: job.MostMade}
		object := []byte(`{"apiVersion": "v1", "kind": "A", "it": ` + text + "}")
		got, decodeErr := reader.Decode("a.json", string(object))
		switch {
		case err != nil && decodeErr == nil:
			t.Fatalf("%s is taken, in spite of %v", data, err)
		case err != nil:
			return
		case decodeErr != nil:
			known := longKey.Match(data) || strings.Contains(decodeErr.Error(), "nested deeper") || strings.Contains(decodeErr.Error(), "already set in map")
			if !known {
				t.Fatalf("%s as %s: %v", data, text, decodeErr)
			}
			return
		}
		a, _ := json.Marshal(withoutSign(want))
		b, _ := json.Marshal(withoutSign(got.Object.Object["it"]))
		if !bytes.Equal(a, b) {
			t.Errorf("%q is read as %s, want %s", data, b, a)
		}
	})
}

// withoutSign takes the sign from each zero: on the way through YAML, it gets lost.
func withoutSign(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutSign(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutSign(v[i])
		}
	case float64:
		if v == 0 {
			return 0.0
		}
	}
	return value
}

// longKey is a key of JSON that YAML has no room for.
var longKey = regexp.MustCompile(`"[^"]{200,}`)

// An end of a document with nothing behind it is no reason to refuse it, nor are lists without items.
func TestManifestsThatEnd(t *testing.T) {
	r := rendering.NewRenderer(t)
	for name, text := range map[string]string{
		"an end":             rendering.ConfigMap + "...\n",
		"comments behind it": rendering.ConfigMap + "...\n\n# nothing more\n",
		"and again":          rendering.ConfigMap + "...\n...\n---\n",
		"a text":             rendering.ConfigMap + "data:\n  a: |\n    ...\n    ---\n",
		"nothing, after CR":  rendering.ConfigMap + "\r---\r# nothing\r",
		"an empty list":      rendering.ConfigMap + "---\napiVersion: v1\nkind: List\nitems:\n---\napiVersion: v1\nkind: SecretList\nmetadata: {}\nitems: null\n",
	} {
		result, err := r.Files(t.Context(), rendering.FilesJob("", map[string]string{"x.yaml": text}))
		if err != nil || len(result.Objects) != 1 {
			t.Errorf("%s: %+v, %v", name, result, err)
			continue
		}
		if recorded, err := record.ParseManifest(result.Manifest); err != nil || !cmp.Equal(recorded, result.Objects) {
			t.Errorf("%s: the record has %v, %v", name, recorded, err)
		}
	}
}
