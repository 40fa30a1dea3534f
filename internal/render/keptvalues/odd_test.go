// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/test/must"
)

// asServed is how a cluster serves a Secret of the release.
func asServed(name string, data map[string]string) *unstructured.Unstructured {
	served := map[string]any{}
	for key, value := range data {
		served[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "data": served,
	}}
}

// takenOver renders a chart of a Helm release with objects.
func (b *bench) takenOver(t *testing.T, text string, live ...*unstructured.Unstructured) (*job.Result, error) {
	t.Helper()
	req := b.request(text, nil)
	req.Live = func(context.Context) ([]*unstructured.Unstructured, error) { return live, nil }
	return b.Chart(t.Context(), req)
}

func stringData(result *job.Result, name, key string) string {
	for _, o := range result.Objects {
		if o.GetKind() == "Secret" && o.GetName() == name {
			value, _, _ := unstructured.NestedString(o.Object, "stringData", key)
			return value
		}
	}
	return ""
}

// TestPasswordsOfPersonsAreKept takes over what people set in Secrets in place of what the chart
// generated, and renders again from the record.
func TestPasswordsOfPersonsAreKept(t *testing.T) {
	b := newBench(t)
	for call, passwords := range map[string][]string{
		`randAlphaNum 16`: {"hunter2", "correct horse: battery, {staple} # \"1'", "pässwörd", "x: y", "$2y$05$abc", "from a file\n"},
		`uuidv4`:          {"hunter2"},
		`bcrypt "x"`:      {"$2y$05$" + strings.Repeat("a", 53)},
	} {
		for _, password := range passwords {
			text := "{{ $p := " + call + " }}" + object("Secret", "s", "stringData:\n  p: {{ $p | quote }}\n")
			first, err := b.takenOver(t, text, asServed("s", map[string]string{"p": password}))
			if err != nil {
				t.Errorf("%s, %q: %v", call, password, err)
				continue
			}
			second := b.render(t, text, first.Generated)
			third := b.render(t, text, second.Generated)
			for i, result := range []*job.Result{first, second, third} {
				if got := stringData(result, "s", "p"); got != password || result.Made {
					t.Errorf("%s: %q is %q in rendering %d", call, password, got, i+1)
				}
			}
		}
	}
}

func TestSumsOfSecretsMayDependOnPasswordsOfPersons(t *testing.T) {
	b := newBench(t)
	text := "{{ $p := randAlphaNum 16 }}" + object("Secret", "s", "stringData:\n  url: {{ printf \"tcp://me:%s@host\" $p | quote }}\n") +
		object("ConfigMap", "c-{{ $p | sha256sum | trunc 10 }}", "data: {sum: {{ $p | sha256sum }}}\n")
	first := b.render(t, text, nil)
	result := b.render(t, text, tampered(t, first.Generated, "correct horse"))
	must.Equal(t, "tcp://me:correct horse@host", stringData(result, "s", "url"), "the field")
}

// TestOddValuesReachSecretsAlone has values in a line that are not of the form of their function.
func TestOddValuesReachSecretsAlone(t *testing.T) {
	b := newBench(t)
	secretIn := func(namespace string) string {
		return strings.Replace(object("Secret", "s", "stringData: {p: {{ $p | quote }}}\n"), "name: s", "name: s, namespace: "+namespace, 1)
	}
	for name, text := range map[string]string{
		"a Secret of another namespace": secretIn("kube-system"),
		"a ConfigMap":                   object("ConfigMap", "c", "data: {p: {{ $p | quote }}}\n"),
		"a ConfigMap, too":              secretIn("apps") + object("ConfigMap", "c", "data: {p: {{ $p | quote }}}\n"),
		"the name of a Secret":          object("Secret", "s-{{ $p | lower }}", "stringData: {p: x}\n"),
		"a label of a Secret":           object("Secret", "s", "stringData: {p: x}\ntype: {{ $p | quote }}\n"),
		"a key of a Secret":             object("Secret", "s", "stringData: {{ dict $p \"x\" | toJson }}\n"),
		"a field with another's path":   object("ConfigMap", "c", "data:\n  a: {b: {{ $p | quote }}}\n  a.b: x\n"),
		"part of another value":         object("ConfigMap", "c", "data:\n  p: {{ printf \"psql -p '%s'\" $p | b64enc }}\n"),
		"a hook":                        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}\nspec: {p: {{ $p | quote }}}\n",
		"flow style of a Secret":        object("Secret", "s", "stringData: {p: {{ $p }}, q: x}\n"),
		"the template's choice":         object("Secret", "s", "stringData: {p: {{ $p | quote }}}\n{{ if contains \"odd\" $p }}"+object("Secret", "t", "")+"{{ end }}"),
	} {
		t.Run(name, func(t *testing.T) {
			text = "{{ $p := randAlphaNum 16 }}" + text
			first := b.render(t, text, nil)
			again := b.render(t, text, first.Generated)
			if again.Manifest != first.Manifest {
				t.Error("what has the form changed")
			}
			result := b.render(t, text, tampered(t, first.Generated, "odd, r: s"))
			if !result.Made || strings.Contains(result.Manifest, "odd") || len(result.Objects) != len(first.Objects) || len(result.Hooks) != len(first.Hooks) {
				t.Errorf("it came out:\n%s", result.Manifest)
			}
		})
	}
}

// TestOddValuesOfLiveObjectsAreRefusedBeforeTheyAreLost has a release with such a value outside of Secrets: nothing
// is rendered that would change it.
func TestOddValuesOfLiveObjectsAreRefusedBeforeTheyAreLost(t *testing.T) {
	b := newBench(t)
	text := "{{ $p := randAlphaNum 16 }}" + object("Secret", "s", "stringData: {p: {{ $p | quote }}}\n") + object("ConfigMap", "c", "data: {p: {{ $p | quote }}}\n")
	live := func(password string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{asServed("s", map[string]string{"p": password}), {Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "apps"}, "data": map[string]any{"p": password},
		}}}
	}
	if result, err := b.takenOver(t, text, live("abcdefghijklmnop")...); err != nil || result.Made {
		t.Errorf("what has the form isn't taken over: %v", err)
	}
	_, err := b.takenOver(t, text, live("x$(evil)")...)
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Reason != job.ReasonGeneratedValuesLost || !strings.Contains(err.Error(), "ConfigMap c: data.p") || strings.Contains(err.Error(), "evil") {
		t.Errorf("it says %v", err)
	}
}

func TestJoin(t *testing.T) {
	const one, elsewhere = "randAlphaNum/0123/0/p/aa,bb/x", "randAlphaNum/0123/0/q/cc/y"
	for name, tc := range map[string]struct {
		first, second, want job.Generated
		disagree            bool
	}{
		"of two objects":                {job.Generated{one: "a"}, job.Generated{elsewhere: "b"}, job.Generated{one: "a", elsewhere: "b"}, false},
		"equal":                         {job.Generated{one: "a"}, job.Generated{one: "a"}, job.Generated{one: "a"}, false},
		"equal, by other calls":         {job.Generated{one: "a"}, job.Generated{"env/7/0/p/bb/z": "a"}, job.Generated{one: "a", "env/7/0/p/bb/z": "a"}, false},
		"by the same call":              {job.Generated{one: "a"}, job.Generated{one: "b"}, job.Generated{one: "b"}, true},
		"in a common field":             {job.Generated{one: "a"}, job.Generated{"randAlphaNum/0123/0/r/bb,dd/z": "b"}, job.Generated{"randAlphaNum/0123/0/r/bb,dd/z": "b"}, true},
		"in use, before one that isn't": {job.Generated{one: "a"}, job.Generated{"randAlphaNum/0123/2/r/bb,dd/z": "b"}, job.Generated{one: "a"}, false},
		"in use, after one that isn't":  {job.Generated{"randAlphaNum/0123/2/r/bb,dd/z": "b"}, job.Generated{one: "a"}, job.Generated{one: "a"}, false},
		"neither in use":                {job.Generated{"randAlphaNum/0123/1/p/aa/x": "a"}, job.Generated{"randAlphaNum/0123/2/r/aa/x": "b"}, job.Generated{"randAlphaNum/0123/2/r/aa/x": "b"}, true},
		"beside those that stay":        {job.Generated{one: "a", elsewhere: "c"}, job.Generated{one: "b"}, job.Generated{one: "b", elsewhere: "c"}, true},
		"of keys without fields":        {job.Generated{"randAlphaNum/0123": "a"}, job.Generated{"randAlphaNum/0123": "b"}, job.Generated{"randAlphaNum/0123": "b"}, true},
		"of a release without a value":  {nil, job.Generated{one: "b"}, job.Generated{one: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, tc.want, keptvalues.Join(tc.first, tc.second))
			for _, both := range [][2]job.Generated{{tc.first, tc.second}, {tc.second, tc.first}} {
				must.Equal(t, tc.disagree, keptvalues.Disagree(both[0], both[1]), "disagree")
			}
		})
	}
}
