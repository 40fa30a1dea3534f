// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/must"
)

const ours = "chandler/apps/web"

func applied(manager, fields string) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationApply, "", fields)
}

func updated(manager, fields string) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationUpdate, "", fields)
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestFields compares entries of managedFields: only our own one counts, whatever its order.
func TestFields(t *testing.T) {
	const spec = `{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}},"k:{\"port\":9}":{".":{}}}}}`
	const sorted = `{"f:spec":{"f:ports":{"k:{\"port\":9}":{".":{}},"k:{\"port\":80}":{"f:port":{},".":{}}},"f:replicas":{}}}`
	want := drift.FieldsOf([]metav1.ManagedFieldsEntry{applied(ours, spec)}, ours)
	if want == 0 {
		t.Fatal("no hash")
	}
	for title, tc := range map[string]struct {
		managed []metav1.ManagedFieldsEntry
		same    bool
	}{
		"in another order":          {[]metav1.ManagedFieldsEntry{applied(ours, sorted)}, true},
		"others beside it":          {[]metav1.ManagedFieldsEntry{updated("kubectl", `{"f:data":{}}`), applied(ours, spec), entry("kubelet", "Update", "status", `{"f:status":{}}`)}, true},
		"a field less":              {[]metav1.ManagedFieldsEntry{applied(ours, strings.Replace(spec, `"f:replicas":{},`, "", 1))}, false},
		"a field more":              {[]metav1.ManagedFieldsEntry{applied(ours, strings.Replace(spec, `"f:replicas":{}`, `"f:replicas":{},"f:paused":{}`, 1))}, false},
		"of another manager":        {[]metav1.ManagedFieldsEntry{applied("chandler/apps/other", spec)}, false},
		"by an update, as a copy's": {[]metav1.ManagedFieldsEntry{updated(ours, spec)}, false},
		"of the status":             {[]metav1.ManagedFieldsEntry{entry(ours, "Apply", "status", spec)}, false},
		"unreadable":                {[]metav1.ManagedFieldsEntry{applied(ours, `{"f:spec":`)}, false},
		"none":                      {nil, false},
	} {
		if got := drift.FieldsOf(tc.managed, ours); (got == want) != tc.same {
			t.Errorf("%s: %x and %x", title, got, want)
		}
	}
	text, _ := want.MarshalText()
	var back drift.Fields
	if err := back.UnmarshalText(text); err != nil || back != want {
		t.Errorf("%s becomes %x", text, back)
	}
}

// FuzzSums adds and removes objects in any order: only what is there in the end counts.
func FuzzSums(f *testing.F) {
	f.Add([]byte{1, 2, 3, 2, 1})
	f.Add([]byte{0, 255, 7, 7, 7})
	f.Fuzz(func(t *testing.T, steps []byte) {
		there := map[types.NamespacedName]drift.Fields{}
		var sum drift.Sum
		for _, step := range steps {
			key := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(step % 8)}
			if old, ok := there[key]; ok {
				sum.Remove(key, old)
			}
			fields := drift.Fields(step / 8)
			sum.Add(key, fields)
			there[key] = fields
		}
		var fresh drift.Sum
		for _, key := range slices.SortedFunc(maps.Keys(there), func(a, b types.NamespacedName) int { return strings.Compare(b.Name, a.Name) }) {
			fresh.Add(key, there[key])
		}
		if fresh != sum {
			t.Fatalf("%x, and %x when made again", sum, fresh)
		}
		sums := drift.Sums{{Group: "apps", Kind: "Deployment"}: sum, {Kind: "Service"}: fresh + 1}
		if back, rest := drift.ParseSums(sums.String(), 2); !maps.Equal(back, sums) || !rest.Empty() {
			t.Fatalf("%v becomes %v", sums, back)
		}
	})
}

func TestSumsOfNothing(t *testing.T) {
	text := (drift.Sums{}).String()
	if sums, rest := drift.ParseSums(text, 9); text == "" || len(sums) > 0 || !rest.Empty() {
		t.Errorf("%q: it isn't told from a record that says nothing", text)
	}
	if sums, rest := drift.ParseSums("Deployment.apps=xyz,=,Service", 9); len(sums) > 0 || !rest.Empty() {
		t.Errorf("%v", sums)
	}
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	var one, other drift.Sum
	if one.Add(a, 0); one != 0 {
		t.Errorf("an object of which the manager owns nothing makes the sum %x", one)
	}
	one.Add(a, 1)
	one.Add(b, 2)
	other.Add(a, 2)
	other.Add(b, 1)
	if one == other {
		t.Error("two objects that changed places look the same")
	}
}

// TestSumsOfMoreKinds are read up to a limit. The first kind beyond it is told.
func TestSumsOfMoreKinds(t *testing.T) {
	const text = "A=01,A=02,B.x=03,wrong,C=04,D=05"
	a, b, c := schema.GroupKind{Kind: "A"}, schema.GroupKind{Kind: "B", Group: "x"}, schema.GroupKind{Kind: "C"}
	for limit, want := range map[int]struct {
		sums drift.Sums
		rest schema.GroupKind
	}{
		0: {sums: drift.Sums{}, rest: a},
		2: {sums: drift.Sums{a: 2, b: 3}, rest: c},
		3: {sums: drift.Sums{a: 2, b: 3, c: 4}, rest: schema.GroupKind{Kind: "D"}},
		4: {sums: drift.Sums{a: 2, b: 3, c: 4, {Kind: "D"}: 5}},
	} {
		if sums, rest := drift.ParseSums(text, limit); !maps.Equal(sums, want.sums) || rest != want.rest {
			t.Errorf("at most %d: %v, and then %v", limit, sums, rest)
		}
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps, labels: {a/b: x}}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: side, image: s:1}
      - {name: main, image: m:1, ports: [{containerPort: 80}]}
      finalizers: [one, two]
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must.Succeed(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

const (
	all      = `{"f:metadata":{"f:labels":{"f:a/b":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:finalizers":{"v:\"one\"":{},"v:\"two\"":{}},"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`
	replicas = `{"f:spec":{"f:replicas":{}}}`
	image    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}}}`
)

// without returns fields less one.
func without(fields, part string) string { return strings.Replace(fields, part, "", 1) }

// changesOf returns the changes of the deployment of which others took these fields.
func changesOf(others []metav1.ManagedFieldsEntry, ownedNow string) []drift.Change {
	return drift.Changes(append(others, applied(ours, ownedNow)), []metav1.ManagedFieldsEntry{applied(ours, all)}, ours)
}

func TestChanges(t *testing.T) {
	withoutReplicas := without(all, `"f:replicas":{},`)
	for title, tc := range map[string]struct {
		others []metav1.ManagedFieldsEntry
		owned  string
		want   string
		by     []string
	}{
		"nothing":         {nil, all, "", nil},
		"a field":         {[]metav1.ManagedFieldsEntry{updated("hpa", replicas)}, withoutReplicas, ".spec.replicas[hpa]", []string{"hpa"}},
		"of two managers": {[]metav1.ManagedFieldsEntry{updated("hpa", replicas), applied("argo", replicas)}, withoutReplicas, ".spec.replicas[argo hpa]", []string{"argo", "hpa"}},
		"a removed field": {nil, withoutReplicas, ".spec.replicas[]", nil},
		"in an item": {[]metav1.ManagedFieldsEntry{updated("kubectl-set", image)}, strings.Replace(all, `"f:image":{},"f:ports"`, `"f:ports"`, 1),
			`.spec.template.spec.containers[name="main"].image[kubectl-set]`, []string{"kubectl-set"}},
		"the status alone": {[]metav1.ManagedFieldsEntry{entry("kubelet", "Update", "status", `{"f:status":{}}`)}, all, "", []string{}},
	} {
		t.Run(title, func(t *testing.T) {
			changes := changesOf(tc.others, tc.owned)
			var texts []string
			for _, c := range changes {
				texts = append(texts, fmt.Sprintf("%s%v", c.Path, c.Managers))
			}
			if strings.Join(texts, ";") != tc.want {
				t.Errorf("%v", texts)
			}
			if tc.by != nil && !slices.Equal(drift.ManagersOf(changes, tc.others, ours), tc.by) {
				t.Errorf("by %v", drift.ManagersOf(changes, tc.others, ours))
			}
		})
	}
}

// TestManagerOfARemovedField is the one that wrote last, as nobody owns what isn't there.
func TestManagerOfARemovedField(t *testing.T) {
	at := func(e metav1.ManagedFieldsEntry, minute int) metav1.ManagedFieldsEntry {
		e.Time = ptr.To(metav1.NewTime(time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC)))
		return e
	}
	live := []metav1.ManagedFieldsEntry{
		at(updated("first", `{}`), 1), at(updated("last", `{}`), 5), at(applied(ours, `{}`), 9), at(entry("kubelet", "Update", "status", `{}`), 8), updated("never", `{}`),
	}
	if got := drift.ManagersOf(changesOf(nil, without(all, `"f:replicas":{},`)), live, ours); !slices.Equal(got, []string{"last"}) {
		t.Errorf("%v", got)
	}
}

func TestRules(t *testing.T) {
	o := object(t, deployment)
	byHPA := changesOf([]metav1.ManagedFieldsEntry{updated("hpa", replicas)}, without(all, `"f:replicas":{},`))
	mainImage := changesOf([]metav1.ManagedFieldsEntry{updated("kubectl-set", image)},
		strings.Replace(all, `"f:name":{},"f:image":{},"f:ports"`, `"f:name":{},"f:ports"`, 1))
	label := changesOf(nil, without(all, `"f:a/b":{}`))
	second := changesOf(nil, without(all, `,"v:\"two\"":{}`))
	for title, tc := range map[string]struct {
		rule    addonsv1.DriftIgnoreRule
		changes []drift.Change
		ignored bool
	}{
		"the field":               {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/replicas"}}, byHPA, true},
		"what it is in":           {addonsv1.DriftIgnoreRule{Paths: []string{"/spec"}}, byHPA, true},
		"what is in it":           {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/replicas/x"}}, byHPA, false},
		"another":                 {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/paused", "/metadata"}}, byHPA, false},
		"another's name begins":   {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/rep"}}, byHPA, false},
		"the manager":             {addonsv1.DriftIgnoreRule{Managers: []string{"x", "hpa"}}, byHPA, true},
		"another manager":         {addonsv1.DriftIgnoreRule{Managers: []string{"x"}}, byHPA, false},
		"field, other manager":    {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/replicas"}, Managers: []string{"x"}}, byHPA, false},
		"the kind":                {addonsv1.DriftIgnoreRule{Kind: "Deployment"}, byHPA, true},
		"kind and group":          {addonsv1.DriftIgnoreRule{Kind: "Deployment", Group: ptr.To("apps")}, byHPA, true},
		"the core group":          {addonsv1.DriftIgnoreRule{Kind: "Deployment", Group: ptr.To("")}, byHPA, false},
		"another kind":            {addonsv1.DriftIgnoreRule{Kind: "StatefulSet"}, byHPA, false},
		"the name":                {addonsv1.DriftIgnoreRule{Name: "web"}, byHPA, true},
		"another name":            {addonsv1.DriftIgnoreRule{Name: "webs"}, byHPA, false},
		"an item by its number":   {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/template/spec/containers/1/image"}}, mainImage, true},
		"another item":            {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/template/spec/containers/0/image"}}, mainImage, false},
		"any item":                {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/template/spec/containers/*/image"}}, mainImage, true},
		"a name with a slash":     {addonsv1.DriftIgnoreRule{Paths: []string{"/metadata/labels/a~1b"}}, label, true},
		"a value of a set":        {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/template/spec/finalizers/1"}}, second, true},
		"another value of a set":  {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/template/spec/finalizers/0"}}, second, false},
		"a number for a field":    {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/0"}}, byHPA, false},
		"a star for a field":      {addonsv1.DriftIgnoreRule{Paths: []string{"/spec/*"}}, byHPA, false},
		"a removed one's manager": {addonsv1.DriftIgnoreRule{Managers: []string{"hpa"}}, label, false},
	} {
		t.Run(title, func(t *testing.T) {
			if len(tc.changes) != 1 {
				t.Fatalf("%v", tc.changes)
			}
			ignored, rest := drift.Rules{tc.rule}.For(o).Split(o, tc.changes)
			if (len(ignored) == 1) != tc.ignored || len(ignored)+len(rest) != 1 {
				t.Errorf("ignored %v, not %v", ignored, rest)
			}
		})
	}
}

// TestWithout leaves out the fields that were changed, and nothing else.
func TestWithout(t *testing.T) {
	o := object(t, deployment)
	before := o.DeepCopy()
	for title, tc := range map[string]struct{ gone, field, text string }{
		"a field":          {`"f:replicas":{},`, "  replicas: 2\n", ""},
		"a field of a map": {`"f:a/b":{}`, "{a/b: x}", "{}"},
		"an item's field":  {`"f:image":{},"f:ports"`, "image: m:1, ", ""},
		"an item of a set": {`,"v:\"two\"":{}`, ", two", ""},
	} {
		t.Run(title, func(t *testing.T) {
			owned := without(all, tc.gone)
			if strings.HasSuffix(tc.gone, `"f:ports"`) {
				owned = strings.Replace(all, tc.gone, `"f:ports"`, 1)
			}
			changes := changesOf(nil, owned)
			got := drift.Without(o, changes)
			want := object(t, strings.Replace(deployment, tc.field, tc.text, 1))
			if fmt.Sprint(got.Object) != fmt.Sprint(want.Object) {
				t.Errorf("%v\nnot %v", got.Object, want.Object)
			}
			if fmt.Sprint(o.Object) != fmt.Sprint(before.Object) {
				t.Fatal("the object itself was changed")
			}
		})
	}
}

// TestContest sets a field back that somebody changes at once, each time.
func TestContest(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := changesOf([]metav1.ManagedFieldsEntry{updated("hpa", replicas)}, without(all, `"f:replicas":{},`))
	repairs := func(c *drift.Contest, changes []drift.Change, for_ time.Duration) int {
		n := 0
		for end := now.Add(for_); now.Before(end); now = now.Add(time.Second) {
			if c.Wait(now, changes) == 0 {
				c.Repaired(now, changes)
				n++
			}
		}
		return n
	}
	c := &drift.Contest{}
	if n := repairs(c, changes, 5*time.Minute); n < 6 || n > 9 || !c.IsFight() {
		t.Errorf("%d repairs in five minutes", n)
	}
	if n := repairs(c, changes, 24*time.Hour); n < 24 || n > 56 {
		t.Errorf("%d repairs in a day", n)
	}
	if wait := c.Wait(now, changesOf(nil, without(all, `"f:a/b":{}`))); wait > 0 {
		t.Errorf("another field waits %s", wait)
	}
	repairs(c, changes, time.Minute)
	now = now.Add(2 * time.Hour)
	if !c.IsOver(now) || c.Wait(now, changes) > 0 || c.IsFight() {
		t.Error("two quiet hours don't end it")
	}
	gone := &drift.Contest{}
	if n := repairs(gone, nil, 5*time.Minute); n < 6 || n > 9 {
		t.Errorf("an object that somebody deletes is made again %d times", n)
	}
	rare := &drift.Contest{}
	for range 50 { // somebody who tries something out, every two minutes
		if rare.Wait(now, changes) > 0 {
			t.Fatal("a change every two minutes counts as a fight")
		}
		rare.Repaired(now, changes)
		now = now.Add(2 * time.Minute)
	}
}

// A key of an item may be left out if it has a default, as the protocol of a port.
func TestItemWithADefaultKey(t *testing.T) {
	protocol, port := value.NewValueInterface("TCP"), value.NewValueInterface(int64(80))
	key := value.FieldList{{Name: "containerPort", Value: port}, {Name: "protocol", Value: protocol}}
	o := &unstructured.Unstructured{Object: map[string]any{"ports": []any{
		map[string]any{"containerPort": int64(81)}, map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(80), "protocol": "UDP"},
	}}}
	left := drift.Without(o, []drift.Change{{Path: fieldpath.Path{{FieldName: ptr.To("ports")}, {Key: &key}}}})
	ports, _, _ := unstructured.NestedSlice(left.Object, "ports")
	want := []any{map[string]any{"containerPort": int64(81)}, map[string]any{"containerPort": int64(80), "protocol": "UDP"}}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
