// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// Words of the table of docs/addon-upgrades.md for kinds of changes.
const (
	anotherRelease = "another release"
	anUpgrade      = "upgrade"
	otherContent   = "upgrade, if the content is another"
	aTerm          = "term"
	neither        = "neither"
)

// TestFieldsOfAddons changes each field of an add-on, and compares what comes of it with the table of docs/addon-upgrades.md.
func TestFieldsOfAddons(t *testing.T) {
	page, err := docs.Read("../../..", "docs/addon-upgrades.md")
	must.Succeed(t, err)
	section, err := page.Section("## Which changes upgrade")
	must.Succeed(t, err)
	documented, met := map[string]string{}, map[string]bool{}
	for _, row := range section.Rows("field") {
		for _, field := range row.Code(0) {
			documented[field] = row.Text(1)
		}
	}
	q := readingCluster(t)
	for field, of := range fieldsOf(reflect.TypeFor[addonsv1.Addon](), "") {
		row := rowOf(field, documented)
		if met[row] = true; row == "" {
			t.Errorf("%s has no row in the table of %s", field, page.Path)
			continue
		}
		before, after := samplesOf(t, field, of)
		if got := changeBetween(t, q, before, after); got != documented[row] {
			t.Errorf("a change of %s is %q, and by the table of %s %q", field, got, page.Path, documented[row])
		}
	}
	for field := range documented {
		if !met[field] {
			t.Errorf("%s has a row for %s: there is no such field, or all of its fields have rows of their own", page.Path, field)
		}
	}
}

// readingCluster returns what reads values, as of the objects "one" and "two".
func readingCluster(t *testing.T) inputs.Reader {
	t.Helper()
	q := addons.Given(t).Inputs
	objects := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for i, name := range []string{"one", "two"} {
		meta, other := metav1.ObjectMeta{Namespace: "team", Name: name}, []string{"two", "one"}[i]
		data := map[string]string{name: "object: " + name, other: "object: not " + name}
		secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{}}
		for key, text := range data {
			secret.Data[key] = []byte("kind: Secret\n" + text)
		}
		objects.WithObjects(&corev1.ConfigMap{ObjectMeta: meta, Data: data}, secret)
	}
	reader := objects.Build()
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	q.Values.Sources, q.Values.Renderer = valuesource.NewReader(reader, reader, nil), renderer
	return q
}

// changeBetween returns the kind of the change from one add-on, which is installed, to another.
func changeBetween(t *testing.T, q inputs.Reader, before, after addonsv1.Addon) string {
	t.Helper()
	var ins [2]*inputs.Inputs
	var terms [2]deliver.Terms
	for i, written := range []addonsv1.Addon{before, after} {
		a := &wanted.Addon{Addon: written, Sources: written.ValuesFrom, Stack: "platform"}
		a.Fit("v1.34.0", nil)
		in := &inputs.Inputs{Addon: a, Chart: a.Reference(q.ClusterAddon.Namespace), Artifact: "sha256:a"}
		must.Succeed(t, q.ReadValues(t.Context(), in, deliver.Summary{}))
		ins[i], terms[i] = in, delivery.TermsOf(a, deliver.Summary{}, in, true)
		terms[i].Postconditions = a.PostconditionsDigest() // once they hold
	}
	switch {
	case ins[0].Release() != ins[1].Release():
		return anotherRelease
	case ins[0].Digest(job.FactsUsed{}) != ins[1].Digest(job.FactsUsed{}):
		return anUpgrade
	case ins[0].Chart.String() != ins[1].Chart.String():
		return otherContent
	case !equality.Semantic.DeepEqual(terms[0], terms[1]):
		return aTerm
	}
	return neither
}

// samplesOf returns two add-ons that differ in the field alone.
func samplesOf(t *testing.T, path string, of reflect.Type) (before, after addonsv1.Addon) {
	t.Helper()
	for i, a := range []*addonsv1.Addon{&before, &after} {
		fields := map[string]any{}
		if at := slices.IndexFunc(besides, func(b beside) bool { return strings.HasPrefix(path, b.path) }); at >= 0 {
			must.Succeed(t, json.Unmarshal([]byte(besides[at].fields), &fields))
		}
		text := []string{"one", "two"}[i]
		if special, is := specialTexts[path]; is {
			text = special[i]
		}
		value := any(text)
		switch of.Kind() {
		case reflect.String:
		case reflect.Slice:
			value = []string{text}
		case reflect.Bool:
			value = i == 1
		case reflect.Int32:
			value = 20 + i
		case reflect.Struct: // any JSON
			value = map[string]string{"a": text}
		default:
			t.Fatalf("%s is a %s: add how to change it", path, of)
		}
		set(fields, path, value)
		data, err := json.Marshal(fields)
		must.Succeed(t, err)
		if a.Name = "web"; json.Unmarshal(data, a) != nil {
			t.Fatalf("%s isn't %s", path, data)
		}
	}
	return before, after
}

// set puts a value at a path, as "valuesFrom[].name". It makes what leads there.
func set(in map[string]any, path string, value any) {
	name, rest, isDeeper := strings.Cut(path, ".")
	if !isDeeper {
		in[name] = value
		return
	}
	name, isList := strings.CutSuffix(name, "[]")
	inner, _ := in[name].(map[string]any)
	if list, _ := in[name].([]any); len(list) > 0 {
		inner = list[0].(map[string]any)
	}
	if inner == nil {
		inner = map[string]any{}
	}
	if in[name] = inner; isList {
		in[name] = []any{inner}
	}
	set(inner, rest, value)
}

// specialTexts are of fields that don't take just any text.
var specialTexts = map[string][2]string{
	"valuesTemplate":     {"a: 1", "a: 2"},
	"valuesTemplateMode": {string(addonsv1.ValuesTemplateModeStrict), string(addonsv1.ValuesTemplateModeClusterStack)},
	"valuesFrom[].kind":  {"ConfigMap", "Secret"},
	// The add-ons run with 1.34.
	"chart.versions[].kubernetes": {"1.34.x", "1.33.x"},
}

// beside has other fields, without which those whose paths begin so have no effect.
type beside struct{ path, fields string }

// besides are tried in this order.
var besides = []beside{
	{"valuesFrom[]", `{"valuesFrom":[{"kind":"ConfigMap","name":"one","key":"one"}]}`},
	{"valuesTemplateMode", `{"valuesTemplate":"values: 'a: 1'"}`},
	{"chart.digest", `{"chart":{"path":"web"}}`},
	{"chart.versions", `{"chart":{"oci":{"url":"oci://registry.example/web"},"versions":[{"kubernetes":"1.34.x","version":"1.0.0"}]}}`},
	{"chart.ver", `{"chart":{"oci":{"url":"oci://registry.example/web"},"version":"1.0.0"}}`},
	{"chart.", `{"chart":{"version":"1.0.0"}}`},
	{"kustomization.ver", `{"kustomization":{"oci":{"url":"oci://registry.example/web"},"version":"1.0.0"}}`},
	{"kustomization.", `{"kustomization":{"version":"1.0.0"}}`},
	{"manifests.ver", `{"manifests":{"oci":{"url":"oci://registry.example/web"},"version":"1.0.0"}}`},
	{"manifests.", `{"manifests":{"version":"1.0.0"}}`},
}

// fieldsOf returns all fields below a type that have none themselves, by their paths, as "valuesFrom[].name".
func fieldsOf(of reflect.Type, path string) map[string]reflect.Type {
	switch {
	case of.Kind() == reflect.Pointer:
		return fieldsOf(of.Elem(), path)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		return fieldsOf(of.Elem(), path+"[]")
	case of.Kind() != reflect.Struct || of == reflect.TypeFor[apiextensionsv1.JSON]():
		return map[string]reflect.Type{path: of}
	}
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(of) {
		if len(field.Index) > 1 {
			continue
		}
		below := path
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" { // else it is inlined
			below = strings.TrimPrefix(path+"."+name, ".")
		}
		maps.Copy(fields, fieldsOf(field.Type, below))
	}
	return fields
}

// rowOf returns the row that a field belongs to: its own, or that of the nearest field above it.
func rowOf(field string, rows map[string]string) string {
	for field != "" {
		if _, is := rows[field]; is {
			return field
		}
		field = field[:max(strings.LastIndexByte(field, '.'), 0)]
		if _, is := rows[field]; !is {
			field = strings.TrimSuffix(field, "[]")
		}
	}
	return ""
}
