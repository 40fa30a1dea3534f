// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/long"
)

const appliedFields = "addons.cluster.x-k8s.io/applied-fields"

// edit changes an object as a manager does that updates.
func (e *env) edit(manager string, o *unstructured.Unstructured, patch string) {
	e.t.Helper()
	e.Expect(o).NotTo(BeNil())
	e.Expect(e.target.Client.Patch(e.ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))).To(Succeed())
}

// look repairs an add-on, or reports, and expects it to come to an end.
func (e *env) look(want deliver.Repair) []repair.Difference {
	e.t.Helper()
	o, found, err := e.d.Repair(e.ctx, e.target, want)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), "%+v", o)
	return found
}

// find is look, again if a controller that writes to an object all the time asks for it.
func (e *env) find(want deliver.Repair) (found []repair.Difference) {
	e.t.Helper()
	e.Eventually(func() bool {
		found = e.look(want)
		return slices.ContainsFunc(found, func(d repair.Difference) bool { return d.Wait > 0 })
	}).WithTimeout(90 * time.Second).WithPolling(100 * time.Millisecond).Should(BeFalse())
	return found
}

// changesOf lists the changes that were found, as "name path" or "name is gone", sorted.
func changesOf(found []repair.Difference) []string {
	texts := []string{}
	for _, d := range found {
		if d.Gone {
			texts = append(texts, d.Object.Name+" is gone")
		}
		for _, c := range d.Changes {
			texts = append(texts, d.Object.Name+" "+c.Path.String())
		}
	}
	slices.Sort(texts)
	return texts
}

func managersOf(found []repair.Difference) []string {
	names := []string{}
	for _, d := range found {
		names = append(names, d.Managers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expectRepaired expects that each object that was found to differ is as it is to be.
func (e *env) expectRepaired(found []repair.Difference) {
	e.t.Helper()
	for _, d := range found {
		if d.Gone || len(d.Changes) > 0 {
			e.Expect(d.Repaired).To(BeTrue(), "%+v", d)
		}
		e.Expect(d.Now).To(Equal(d.Applied), "%+v", d)
	}
}

// fieldsNow returns the fields of an object that an add-on owns.
func (e *env) fieldsNow(release deliver.Release, key deliver.ObjectKey) drift.Fields {
	e.t.Helper()
	m := &metav1.PartialObjectMetadata{}
	mapping, err := e.target.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: key.Group, Kind: key.Kind})
	e.Expect(err).NotTo(HaveOccurred())
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, m); err != nil {
		e.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return 0
	}
	return drift.FieldsOf(m.ManagedFields, object.FieldManager(release))
}

// labelled is a ConfigMap with a label, and two keys.
const labelled = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {tier: front}}\ndata: {key: x, second: z}\n"

// TestRepairTellsWhatWasChanged reports first, which writes nothing, and then sets it right.
func TestRepairTellsWhatWasChanged(t *testing.T) {
	settings := func(e *env, ns string) *unstructured.Unstructured { return e.get("v1", "ConfigMap", ns, "settings") }
	app := func(e *env, ns string) *unstructured.Unstructured { return e.get("apps/v1", "Deployment", ns, "app") }
	for title, tc := range map[string]struct {
		change   func(e *env, ns string)
		changes  []string
		managers []string
	}{
		"nothing": {func(*env, string) {}, []string{}, []string{}},
		"a value": {func(e *env, ns string) { e.edit("kubectl-edit", settings(e, ns), `{"data":{"key":"y"}}`) },
			[]string{"settings .data.key"}, []string{"kubectl-edit"}},
		"by server-side apply": {func(e *env, ns string) { e.apply("argo", theirConfigMap(ns, "settings", "theirs")) },
			[]string{"settings .data.key"}, []string{"argo"}},
		"a label": {func(e *env, ns string) {
			e.edit("kubectl-label", settings(e, ns), `{"metadata":{"labels":{"tier":"back"}}}`)
		},
			[]string{"settings .metadata.labels.tier"}, []string{"kubectl-label"}},
		"a key is removed": {func(e *env, ns string) { e.edit("kubectl-edit", settings(e, ns), `{"data":{"key":null,"other":"y"}}`) },
			[]string{"settings .data.key"}, []string{"kubectl-edit"}},
		"two fields, by two": {func(e *env, ns string) {
			e.edit("one", settings(e, ns), `{"data":{"key":"y"}}`)
			e.edit("two", settings(e, ns), `{"data":{"second":"y"}}`)
		}, []string{"settings .data.key", "settings .data.second"}, []string{"one", "two"}},
		"a scale": {func(e *env, ns string) { e.edit("kubectl-scale", app(e, ns), `{"spec":{"replicas":0}}`) },
			[]string{"app .spec.replicas"}, []string{"kubectl-scale"}},
		"an image": {func(e *env, ns string) {
			e.edit("kubectl-set", app(e, ns), `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example.com/app:2"}]}}}}`)
		}, []string{`app .spec.template.spec.containers[name="c"].image`}, []string{"kubectl-set"}},
		"a deletion": {func(e *env, ns string) { e.delete(settings(e, ns)) }, []string{"settings is gone"}, []string{}},
		"all at once": {func(e *env, ns string) {
			e.delete(settings(e, ns))
			e.edit("kubectl-scale", app(e, ns), `{"spec":{"replicas":0}}`)
		}, []string{"app .spec.replicas", "settings is gone"}, []string{"kubectl-scale"}},
		"what isn't of the chart": {func(e *env, ns string) {
			e.edit("somebody", settings(e, ns), `{"metadata":{"annotations":{"a":"b"}},"data":{"their":"own"}}`)
		}, []string{}, []string{}},
	} {
		t.Run(title, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: labelled + deployment("app")})
			e.install(want)
			tc.change(e, ns)
			before := e.snapshot(ns)
			e.meter.reset()
			found := e.find(deliver.Repair{Release: want.Release, Report: true})
			e.Expect(changesOf(found)).To(Equal(tc.changes))
			e.Expect(managersOf(found)).To(Equal(tc.managers))
			for _, d := range found {
				e.Expect(d.Repaired).To(BeFalse())
				e.Expect(d.Now).To(Equal(e.fieldsNow(want.Release, d.Object)))
			}
			e.expectWrites(0, "it is a report")
			e.Expect(e.snapshot(ns)).To(Equal(before))

			found = e.find(deliver.Repair{Release: want.Release})
			e.Expect(changesOf(found)).To(Equal(tc.changes))
			e.Expect(managersOf(found)).To(Equal(tc.managers))
			e.expectRepaired(found)
			_, writes := e.meter.total()
			e.Expect(writes).To(BeNumerically("<=", len(tc.changes)))
			e.Expect(settings(e, ns).Object["data"]).To(And(HaveKeyWithValue("key", "x"), HaveKeyWithValue("second", "z")))
			e.Expect(settings(e, ns).GetLabels()).To(HaveKeyWithValue("tier", "front"))
			e.Expect(app(e, ns).Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(1)))
			e.Expect(fmt.Sprint(app(e, ns).Object["spec"])).To(ContainSubstring("example.com/app:1"))

			e.meter.reset()
			e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release}))).To(BeEmpty(), "all is as it is to be")
			e.expectWrites(0)
			e.Expect(e.records(ns)[want.Release].Revision).To(Equal(1), "no revision is made")
		})
	}
}

// TestReportOfWhatWasChangedBack tells no difference; a repair takes the field back.
func TestReportOfWhatWasChangedBack(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	for _, value := range []string{"y", "x"} {
		e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "settings"), `{"data":{"key":"`+value+`"}}`)
	}
	found := e.find(deliver.Repair{Release: want.Release, Report: true})
	e.Expect(changesOf(found)).To(BeEmpty())
	e.Expect(found[0].Differs()).To(BeFalse())
	e.Expect(found[0].Now).NotTo(Equal(found[0].Applied), "the field is somebody else's")
	e.expectRepaired(e.find(deliver.Repair{Release: want.Release}))
}

// TestRecordTellsWhatWasApplied, so that objects needn't be read which a watch shows.
func TestRecordTellsWhatWasApplied(t *testing.T) {
	long.InCI(t)
	e, ns := beside(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: labelled + deployment("app") + crd(group) + widget(group, "one") + plainJob("", "")})
	e.install(want)
	keys := []deliver.ObjectKey{
		{Kind: "ConfigMap", Namespace: ns, Name: "settings"}, {Group: "apps", Kind: "Deployment", Namespace: ns, Name: "app"},
		{Group: group, Kind: "Widget", Namespace: ns, Name: "one"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets." + group},
	}
	fields := map[deliver.ObjectKey]drift.Fields{}
	sums := func(keys ...deliver.ObjectKey) string {
		sums := drift.Sums{}
		for _, key := range keys {
			fields[key] = e.fieldsNow(want.Release, key)
			e.Expect(fields[key]).NotTo(BeZero())
			var sum drift.Sum
			sum.Add(types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, fields[key])
			sums[schema.GroupKind{Group: key.Group, Kind: key.Kind}] = sum
		}
		return sums.String()
	}
	expected := sums(keys...)
	said := func() string {
		return e.get("v1", "Secret", ns, "sh.helm.release.v1.demo.v1").GetAnnotations()[appliedFields]
	}
	e.Expect(said()).To(Equal(expected), "of Jobs it says nothing")
	e.Expect(e.records(ns)[want.Release].Applied).To(Equal(expected))

	asSeen := func(key deliver.ObjectKey) (drift.Fields, bool) { return fields[key], fields[key] != 0 }
	measure := func(seen func(deliver.ObjectKey) (drift.Fields, bool)) int {
		e.meter.reset()
		e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release, Seen: seen}))).To(BeEmpty())
		requests, writes := e.meter.total()
		e.Expect(writes).To(BeZero())
		return requests
	}
	e.Expect(measure(asSeen)).To(Equal(2), "the records are listed, and one is read")
	for _, other := range keys {
		for title, seen := range map[string]func(deliver.ObjectKey) (drift.Fields, bool){
			"seen otherwise": func(key deliver.ObjectKey) (drift.Fields, bool) {
				if key == other {
					return 7, true
				}
				return asSeen(key)
			},
			"not known": func(key deliver.ObjectKey) (drift.Fields, bool) { return fields[key], key != other },
			"not seen": func(key deliver.ObjectKey) (drift.Fields, bool) {
				if key == other {
					return 0, true
				}
				return asSeen(key)
			},
		} {
			expected := 3
			if title == "seen otherwise" {
				expected = 4 // with the dry run beside the look
			}
			e.Expect(measure(seen)).To(Equal(expected), "%s is %s, so it is read, and no other", other, title)
		}
	}

	// A record of an older version says nothing of it.
	e.edit("older", e.get("v1", "Secret", ns, "sh.helm.release.v1.demo.v1"), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, appliedFields))
	e.Expect(said()).To(BeEmpty())
	e.find(deliver.Repair{Release: want.Release})
	e.Expect(said()).To(Equal(expected))

	next := e.want(ns, chart{version: "2", manifest: strings.Replace(labelled, ", second: z", "", 1)})
	e.install(next)
	e.Expect(e.records(ns)[want.Release].Applied).To(Equal(sums(keys[0])))
}

// stopped holds the first write to a path until it may go on, as if its process had been stopped.
type stopped struct {
	next         http.RoundTripper
	path         string
	once         sync.Once
	reached, end chan struct{}
}

func (s *stopped) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, s.path) && !strings.Contains(r.URL.RawQuery, "dryRun") {
		s.once.Do(func() { close(s.reached) })
		<-s.end
	}
	return s.next.RoundTrip(r)
}

// TestLateWriter has a previous leader, which was stopped in the middle of a write, put an older value over a newer one.
func TestLateWriter(t *testing.T) {
	e, ns := beside(t)
	of := func(version string) deliver.Desired {
		return e.want(ns, chart{version: version, manifest: configMap("x", version)})
	}
	value := func() any { return e.get("v1", "ConfigMap", ns, "x").Object["data"].(map[string]any)["key"] }
	e.install(of("1"))
	s := &stopped{path: "/configmaps/x", reached: make(chan struct{}), end: make(chan struct{})}
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { s.next = rt; return s })
	c, err := client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	target, late := e.target, of("2")
	target.Client, late.Proof = c, e.proofs.of(late.Release)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = deliver.New(deliver.Options{}).Ensure(context.Background(), target, late)
	}()
	<-s.reached
	e.install(of("3")) // the new leader
	close(s.end)
	<-done
	e.Expect(value()).To(Equal("2"), "nobody can hold it up")
	found := e.look(deliver.Repair{Release: late.Release, Values: true})
	e.Expect(changesOf(found)).To(Equal([]string{"x .data.key"}))
	e.Expect(value()).To(Equal("3"))
	e.Expect(changesOf(e.look(deliver.Repair{Release: late.Release, Values: true}))).To(BeEmpty())
}
