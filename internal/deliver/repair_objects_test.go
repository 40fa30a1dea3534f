// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// scaled is an add-on whose Deployment hpa has scaled to 3, and of whose label somebody made another.
type scaled struct {
	*env
	ns   string
	want deliver.Desired
}

var byHPA = drift.Rules{{Kind: "Deployment", Managers: []string{"hpa"}}}

func tiered(image string) string {
	text := strings.Replace(deployment("app"), "metadata: {name: app}", "metadata: {name: app, labels: {tier: front}}", 1)
	return strings.Replace(text, "example.com/app:1", image, 1)
}

func newScaled(t *testing.T) *scaled {
	t.Helper()
	return newScaledOf(t, tiered("example.com/app:1"))
}

// newScaledOf has a Deployment of the manifest, which others have scaled and labelled.
func newScaledOf(t *testing.T, manifest string) *scaled {
	t.Helper()
	s := &scaled{env: newEnv(t)}
	s.ns = s.namespace()
	s.want = s.of("1", manifest)
	s.install(s.want)
	s.scale("hpa", 3)
	s.edit("kubectl-label", s.app(), `{"metadata":{"labels":{"tier":"back"}}}`)
	return s
}

func (s *scaled) of(version, manifest string) deliver.Desired {
	return s.env.want(s.ns, chart{version: version, manifest: manifest})
}

func (s *scaled) app() *unstructured.Unstructured { return s.get("apps/v1", "Deployment", s.ns, "app") }

func (s *scaled) scale(manager string, replicas int) {
	s.t.Helper()
	s.edit(manager, s.app(), `{"spec":{"replicas":`+string(rune('0'+replicas))+`}}`)
}

func (s *scaled) expect(replicas int, tier string) {
	s.t.Helper()
	app := s.app()
	s.Expect(app.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(replicas)))
	s.Expect(app.GetLabels()).To(HaveKeyWithValue("tier", tier))
}

// again has but the label changed.
func (s *scaled) again() {
	s.t.Helper()
	s.expectRepaired(s.find(deliver.Repair{Release: s.want.Release}))
	s.edit("kubectl-label", s.app(), `{"metadata":{"labels":{"tier":"back"}}}`)
}

// TestRulesLeaveFieldsToOthers in a repair of another field, and in an upgrade.
func TestRulesLeaveFieldsToOthers(t *testing.T) {
	t.Parallel()
	s := newScaled(t)
	found := s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA, Report: true})
	s.Expect(changesOf(found)).To(Equal([]string{"app .metadata.labels.tier"}))
	s.Expect(managersOf(found)).To(Equal([]string{"kubectl-label"}))
	found = s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
	s.Expect(changesOf(found)).To(Equal([]string{"app .metadata.labels.tier"}))
	s.Expect(found[0].Repaired).To(BeTrue())
	s.Expect(found[0].Now).NotTo(Equal(found[0].Applied), "the replicas aren't the add-on's")
	s.expect(3, "front")

	s.meter.reset()
	found = s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
	s.Expect(changesOf(found)).To(BeEmpty())
	s.Expect(found[0].Differs()).To(BeFalse())
	s.expectWrites(0, "nothing is to be done")

	next := s.of("2", tiered("example.com/app:2"))
	next.Ignore = byHPA
	s.install(next)
	s.expect(3, "front")
	s.Expect(s.app().GetManagedFields()).To(ContainElement(HaveField("Manager", "hpa")))
	s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA}))).To(BeEmpty())

	found = s.find(deliver.Repair{Release: s.want.Release})
	s.Expect(changesOf(found)).To(Equal([]string{"app .spec.replicas"}), "the rule is gone")
	s.expect(1, "front")
	s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release}))).To(BeEmpty())
	s.scale("hpa", 3)
	s.install(s.of("3", tiered("example.com/app:3")))
	s.expect(1, "front")
}

// TestRulesThatDoNotApply leave nothing to anybody.
func TestRulesThatDoNotApply(t *testing.T) {
	for title, rule := range map[string]addonsv1.DriftIgnoreRule{
		"another manager": {Managers: []string{"vpa"}},
		"another kind":    {Kind: "ConfigMap", Managers: []string{"hpa"}},
		"another name":    {Kind: "Deployment", Name: "other"},
		"another field":   {Kind: "Deployment", Paths: []string{"/spec/paused"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newScaled(t)
			s.expectRepaired(s.find(deliver.Repair{Release: s.want.Release, Ignore: drift.Rules{rule}}))
			s.expect(1, "front")
			s.scale("hpa", 3)
			next := s.of("2", tiered("example.com/app:2"))
			next.Ignore = drift.Rules{rule}
			s.install(next)
			s.expect(1, "front")
		})
	}
}

// TestRulesKeepFieldsAway that somebody removed, until they are gone.
func TestRulesKeepFieldsAway(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "settings"), `{"data":{"key":"y","second":null}}`)
	rules := drift.Rules{{Kind: "ConfigMap", Paths: []string{"/data/second"}}}
	found := e.find(deliver.Repair{Release: want.Release, Ignore: rules})
	e.Expect(changesOf(found)).To(Equal([]string{"settings .data.key"}))
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x"}))
	e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release, Ignore: rules}))).To(BeEmpty())
	e.expectRepaired(e.find(deliver.Repair{Release: want.Release}))
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x", "second": "z"}))
}

// TestRulesKeepNothingNewAway: nobody has what the chart didn't have before.
func TestRulesKeepNothingNewAway(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("settings", "x")}))
	next := e.want(ns, chart{version: "2", manifest: labelled})
	next.Ignore = drift.Rules{{Kind: "ConfigMap"}}
	e.install(next)
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x", "second": "z"}))
}

// hasty is a client of which somebody is faster than its writes. Whoever that is writes with
// another client.
type hasty struct {
	client.Client
	before func()
}

func (c hasty) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.before()
	return c.Client.Patch(ctx, o, patch, options...)
}

func (c hasty) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	all := &client.ApplyOptions{}
	if all.ApplyOptions(options); !slices.Contains(all.DryRun, metav1.DryRunAll) {
		c.before()
	}
	return c.Client.Apply(ctx, o, options...)
}

// TestRepairOfWhatIsChangedMeanwhile overwrites nothing that rules leave to others, and nothing
// that isn't the object any more. If that continues, it tells when to look again.
func TestRepairOfWhatIsChangedMeanwhile(t *testing.T) {
	for title, tc := range map[string]struct {
		first func(s *scaled)
		then  func(s *scaled, i int)
		once  int // the replicas after a repair that somebody was faster than once
	}{
		"somebody continues": {func(*scaled) {}, func(s *scaled, i int) { s.scale("hpa", 4+i%2) }, 4},
		"somebody begins":    {(*scaled).again, func(s *scaled, i int) { s.scale("hpa", 4+i%2) }, 4},
		"somebody makes it again": {func(*scaled) {}, func(s *scaled, _ int) {
			copied := s.app().DeepCopy()
			s.delete(s.app())
			copied.SetResourceVersion("")
			copied.SetUID("")
			copied.SetManagedFields(nil)
			s.Expect(unstructured.SetNestedField(copied.Object, int64(2), "spec", "replicas")).To(Succeed())
			s.Expect(s.target.Client.Create(s.ctx, copied, client.FieldOwner("backup"))).To(Succeed())
		}, 1},
	} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, always: %t", title, always), func(t *testing.T) {
				t.Parallel()
				s := newScaled(t)
				tc.first(s)
				cluster, n := s.target.Client, 0
				s.target.Client = hasty{cluster, func() {
					s.target.Client = cluster
					if n++; n == 1 || always {
						tc.then(s, n-1)
					}
				}}
				repair := deliver.Repair{Release: s.want.Release, Ignore: byHPA}
				if always {
					found := s.look(repair)
					s.Expect(found).To(HaveLen(1))
					s.Expect(found[0].Repaired).To(BeFalse())
					s.Expect(found[0].Wait).To(BeNumerically(">", 0))
					s.Expect(s.app().GetLabels()).To(HaveKeyWithValue("tier", "back"))
				}
				found := s.find(repair)
				s.Expect(n).To(BeNumerically(">", 1))
				s.Expect(found).To(HaveLen(1))
				s.Expect(found[0].Repaired).To(BeTrue(), "%+v", found[0])
				s.Expect(s.app().GetLabels()).To(HaveKeyWithValue("tier", "front"))
				if !always {
					s.expect(tc.once, "front")
				}
			})
		}
	}
}

// TestRepairSparesWhatSomebodyMakesMeanwhile in the place of an object: it isn't the add-on's.
func TestRepairSparesWhatSomebodyMakesMeanwhile(t *testing.T) {
	for title, isGone := range map[string]bool{"of one that was changed": false, "of one that is gone": true} {
		t.Run(title, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
			e.install(want)
			if isGone {
				e.delete(e.get("v1", "ConfigMap", ns, "x"))
			} else {
				e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "x"), `{"data":{"key":"b"}}`)
			}
			cluster, done := e.target.Client, false
			e.target.Client = hasty{cluster, func() {
				e.target.Client = cluster
				if !done && !isGone {
					e.delete(e.get("v1", "ConfigMap", ns, "x"))
				}
				if !done {
					done = true
					e.apply("kubectl", theirConfigMap(ns, "x", "theirs"))
				}
			}}
			o, err := e.repair(want.Release)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(done).To(BeTrue())
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
			o, err = e.repair(want.Release)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Reason).To(Equal(object.ReasonObjectExists), o.Message)
			x := e.get("v1", "ConfigMap", ns, "x")
			e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
			e.Expect(x.GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel))
		})
	}
}

// TestRepairOfWhatIsBeingDeleted waits until it is gone.
func TestRepairOfWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for title, changed := range map[string]bool{"as it was applied": false, "changed, too": true} {
		t.Run(title, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/held]}\ndata: {key: x}\n"})
			e.install(want)
			held := func() *unstructured.Unstructured { return e.get("v1", "ConfigMap", ns, "held") }
			e.delete(held())
			if changed {
				e.edit("kubectl-edit", held(), `{"data":{"key":"y"}}`)
			}
			before := held()
			e.meter.reset()
			found := e.find(deliver.Repair{Release: want.Release})
			e.Expect(changesOf(found)).To(BeEmpty())
			e.expectWrites(0)
			e.Expect(held().Object).To(Equal(before.Object))

			e.edit("somebody", held(), `{"metadata":{"finalizers":null}}`)
			found = e.find(deliver.Repair{Release: want.Release})
			e.Expect(changesOf(found)).To(Equal([]string{"held is gone"}))
			e.expectRepaired(found)
			e.Expect(held().GetUID()).NotTo(Equal(before.GetUID()))
			e.Expect(held().Object["data"]).To(Equal(map[string]any{"key": "x"}))
		})
	}
}

// awaitGone deletes an object, and waits until it is gone. Its finalizers are taken off: an API server has five workers for those of CRDs,
// and each may wait for a minute for the instances of another test.
func (e *env) awaitGone(apiVersion, kind, ns, name string) {
	e.t.Helper()
	e.delete(e.get(apiVersion, kind, ns, name))
	e.Eventually(func() any {
		is := e.get(apiVersion, kind, ns, name)
		if is != nil {
			_ = e.target.Client.Patch(e.ctx, is.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))) // it may be gone by now
		}
		return is
	}).WithTimeout(90 * time.Second).WithPolling(50 * time.Millisecond).Should(BeNil())
}

// TestRepairMakesNoCRDOfTheCRDsDirectory: it isn't in the record. It tells that one is gone.
func TestRepairMakesNoCRDOfTheCRDsDirectory(t *testing.T) {
	e, ns := beside(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", crds: crd(group), manifest: configMap("x", "a")})
	e.install(want)
	definition := deliver.ObjectKey{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets." + group}
	e.edit("kubectl-edit", e.get("apiextensions.k8s.io/v1", definition.Kind, "", definition.Name), `{"spec":{"names":{"shortNames":["wi"],"singular":"thing"}}}`)
	found := e.find(deliver.Repair{Release: want.Release})
	e.Expect(changesOf(found)).To(BeEmpty(), "nothing says what it is to be")

	e.awaitGone("apiextensions.k8s.io/v1", definition.Kind, "", definition.Name)
	e.meter.reset()
	for range 2 {
		found = e.find(deliver.Repair{Release: want.Release})
		e.Expect(changesOf(found)).To(Equal([]string{definition.Name + " is gone"}))
		for _, d := range found {
			e.Expect(d.Differs()).To(Equal(d.Object == definition))
		}
	}
	e.expectWrites(0)
	e.Expect(e.get("apiextensions.k8s.io/v1", definition.Kind, "", definition.Name)).To(BeNil())
}

// TestRepairRunsNoJobAgain, neither one that was collected nor one that somebody deleted.
func TestRepairRunsNoJobAgain(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: plainJob("", "") + configMap("x", "a")})
	e.install(want)
	job := e.get("batch/v1", "Job", ns, "migrate")
	e.Expect(e.target.Client.Delete(e.ctx, job, client.PropagationPolicy("Background"))).To(Succeed())
	e.Eventually(func() any { return e.get("batch/v1", "Job", ns, "migrate") }).WithTimeout(90 * time.Second).Should(BeNil())
	e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release}))).To(BeEmpty())
	e.Expect(e.get("batch/v1", "Job", ns, "migrate")).To(BeNil())
	e.Expect(e.meter.made("migrate")).To(Equal(1))
}

// TestRepairOfACRDAndItsResources makes both again, one after the other.
func TestRepairOfACRDAndItsResources(t *testing.T) {
	e, ns := beside(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: crd(group) + widget(group, "one")})
	e.install(want)
	before := e.snapshot(ns, schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})
	e.awaitGone(group+"/v1", "Widget", ns, "one") // or it would come back with its CRD
	e.awaitGone("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	e.repairAll(want.Release)
	e.Expect(e.snapshot(ns, schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"})).To(Equal(before))
}

// repairAll repairs until nothing differs any more.
func (e *env) repairAll(release deliver.Release) {
	e.t.Helper()
	e.Eventually(func() error {
		o, found, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: release})
		if err == nil && (o.Phase != addonsv1.AddonReady || len(changesOf(found)) > 0) {
			err = fmt.Errorf("%+v: %v", o, changesOf(found))
		}
		return err
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(Succeed())
}

// TestRepairOfWhatSomebodyMadeAnew with the add-on's labels, as a backup does: it is the add-on's.
func TestRepairOfWhatSomebodyMadeAnew(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	e.install(want)
	was := e.fieldsNow(want.Release, deliver.ObjectKey{Kind: "ConfigMap", Namespace: ns, Name: "x"})
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.apply("backup", theirConfigMap(ns, "x", "theirs", addonsv1.AddonLabel+": demo", addonsv1.AddonNamespaceLabel+": "+ns))
	uid := e.get("v1", "ConfigMap", ns, "x").GetUID()
	found := e.find(deliver.Repair{Release: want.Release})
	e.Expect(changesOf(found)).To(ContainElement("x .data.key"))
	e.Expect(managersOf(found)).To(Equal([]string{"backup"}))
	e.expectRepaired(found)
	x := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(x.GetUID()).To(Equal(uid))
	e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "a"}))
	e.Expect(x.GetLabels()).To(HaveKeyWithValue("a", "b"), "that is theirs")
	e.Expect(e.fieldsNow(want.Release, found[0].Object)).To(Equal(was))

	e.install(e.want(ns, chart{version: "2", manifest: configMap("x", "b")}))
	e.Expect(e.get("v1", "ConfigMap", ns, "x").GetUID()).To(Equal(uid))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "x")).To(BeNil())
}

// TestRepairOfWhatCanNotBeChanged tells how to have an object back that somebody made again, also where upgrades may
// recreate it: a repair deletes nothing.
func TestRepairOfWhatCanNotBeChanged(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: deployment("app")})
	want.Recreate = true
	e.install(want)
	e.delete(e.get("apps/v1", "Deployment", ns, "app"))
	e.apply("kubectl", fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: %s, labels: {%s: demo, %s: %s}}\n"+
		"spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: c, image: i}]}}}\n",
		ns, addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel, ns))
	uid := e.get("apps/v1", "Deployment", ns, "app").GetUID()
	for _, report := range []bool{false, true} {
		o, found, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: want.Release, Report: report})
		e.Expect(err).NotTo(HaveOccurred())
		text := o.Message
		if report {
			e.Expect(found).To(HaveLen(1))
			text = found[0].Refused
		} else {
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "it isn't as it is to be")
			e.Expect(o.Reason).To(Equal(object.ReasonImmutableField))
		}
		e.Expect(text).To(ContainSubstring("Deployment "+ns+"/app"), "report %t", report)
		e.Expect(text).NotTo(ContainSubstring("immutableFieldPolicy"), "report %t: it is set", report)
	}
	e.Expect(e.get("apps/v1", "Deployment", ns, "app").GetUID()).To(Equal(uid))

	e.delete(e.get("apps/v1", "Deployment", ns, "app"))
	e.clock.step(10 * time.Minute)
	e.expectRepaired(e.find(deliver.Repair{Release: want.Release}))
	e.Expect(e.get("apps/v1", "Deployment", ns, "app").GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
}

// TestRepairOfTheLabels that say whose an object is. They are set right unless the add-on that
// they name has set fields of the object.
func TestRepairOfTheLabels(t *testing.T) {
	for title, tc := range map[string]struct {
		labels string
		owned  bool
	}{
		"another add-on":               {fmt.Sprintf(`{%q:"other"}`, addonsv1.AddonLabel), false},
		"another namespace":            {fmt.Sprintf(`{%q:"other"}`, addonsv1.AddonNamespaceLabel), false},
		"none":                         {fmt.Sprintf(`{%q:null,%q:null}`, addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel), false},
		"no namespace":                 {fmt.Sprintf(`{%q:null}`, addonsv1.AddonNamespaceLabel), false},
		"another add-on that owns it":  {fmt.Sprintf(`{%q:"other"}`, addonsv1.AddonLabel), true},
		"none, though another owns it": {fmt.Sprintf(`{%q:null,%q:null}`, addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel), true},
	} {
		t.Run(title, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("x", "a") + configMap("second", "a")})
			e.install(want)
			x := func() *unstructured.Unstructured { return e.get("v1", "ConfigMap", ns, "x") }
			other := deliver.Release{Namespace: ns, Name: "other"}
			if tc.owned {
				e.edit(object.FieldManager(other), x(), `{"data":{"key":"of other"}}`)
			}
			e.edit("kubectl-label", x(), `{"metadata":{"labels":`+tc.labels+`}}`)
			e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "second"), `{"data":{"key":"b"}}`)
			labels := x().GetLabels()
			o, found, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: want.Release})
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(e.get("v1", "ConfigMap", ns, "second").Object["data"]).To(Equal(map[string]any{"key": "a"}), "another object is repaired nevertheless")
			if tc.owned && strings.HasPrefix(title, "another") {
				e.Expect([]any{o.Phase, o.Reason}).To(Equal([]any{addonsv1.AddonFailed, object.ReasonOwnedByOther}), o.Message)
				e.Expect(o.RetryAfter).To(BeNumerically(">", 0))
				e.Expect(x().GetLabels()).To(Equal(labels))
				e.Expect(x().Object["data"]).To(Equal(map[string]any{"key": "of other"}))
				return
			}
			e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), o.Message)
			e.expectRepaired(found)
			e.Expect(x().GetLabels()).To(And(HaveKeyWithValue(addonsv1.AddonLabel, "demo"), HaveKeyWithValue(addonsv1.AddonNamespaceLabel, ns)))
			e.Expect(x().Object["data"]).To(Equal(map[string]any{"key": "a"}))
		})
	}
}

// TestRepairAfterACrash cuts the connection after each write of a repair, whose answer is lost,
// and lets a new Deliverer go on. The end has to be the same each time.
func TestRepairAfterACrash(t *testing.T) {
	t.Parallel()
	expected, writes := repairedAt(t, 0)
	const least = 7
	NewWithT(t).Expect(writes).To(BeNumerically(">=", least), "three objects, one of them in four steps, and the record; more where controllers write in between")
	for k := 1; k <= least; k++ {
		t.Run(fmt.Sprintf("write=%d", k), func(t *testing.T) {
			t.Parallel()
			got, _ := repairedAt(t, k)
			NewWithT(t).Expect(got).To(Equal(expected))
		})
	}
}

// repairedAt repairs with a crash at the k-th write, 0 for none, and returns what is in the
// cluster then.
func repairedAt(t *testing.T, k int) ([]string, int) {
	t.Helper()
	s := &scaled{env: newEnv(t)}
	s.ns = s.namespace()
	s.want = s.of("1", recreated("example.com/app:1")+configMap("settings", "x")+configMap("gone", "x"))
	s.install(s.want)
	s.edit("kubectl-edit", s.app(), rolling)
	s.edit("kubectl-edit", s.get("v1", "ConfigMap", s.ns, "settings"), `{"data":{"key":"y"}}`)
	s.delete(s.get("v1", "ConfigMap", s.ns, "gone"))
	s.edit("older", s.get("v1", "Secret", s.ns, "sh.helm.release.v1.demo.v1"), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, appliedFields))
	s.meter.reset()
	s.meter.failFrom, s.meter.done = k, true
	_, _, err := s.d.Repair(s.ctx, s.target, deliver.Repair{Release: s.want.Release})
	s.Expect(err != nil).To(Equal(k > 0), "%v", err)
	_, writes := s.meter.total()
	if k > 0 {
		s.restart()
	}
	s.repairAll(s.want.Release)
	applied := s.records(s.ns)[s.want.Release].Applied
	s.Expect(applied).NotTo(BeEmpty())
	lines := append(s.snapshot(s.ns), fmt.Sprint("strategy ", s.strategy()))
	for _, name := range []string{"settings", "gone"} {
		lines = append(lines, fmt.Sprintf("%s %x", name, s.fieldsNow(s.want.Release, deliver.ObjectKey{Kind: "ConfigMap", Namespace: s.ns, Name: name})))
	}
	return lines, writes
}

func recreated(image string) string {
	return strings.Replace(tiered(image), "  replicas: 1\n", "  replicas: 1\n  strategy: {type: Recreate}\n", 1)
}

// rolling is what kubectl makes of a Deployment's strategy: how to roll it is set by default.
const rolling = `{"spec":{"strategy":{"type":"RollingUpdate"}}}`

func (s *scaled) strategy() any {
	s.t.Helper()
	return s.app().Object["spec"].(map[string]any)["strategy"].(map[string]any)["type"]
}

// TestRepairOfAStrategy takes two steps, as Recreate must not stand beside how to roll.
func TestRepairOfAStrategy(t *testing.T) {
	for title, tc := range map[string]struct {
		ignore   drift.Rules
		changes  []string
		strategy string
		replicas int
		tier     string
	}{
		"alone":       {nil, []string{"app .metadata.labels.tier", "app .spec.replicas", "app .spec.strategy.type"}, "Recreate", 1, "front"},
		"with a rule": {byHPA, []string{"app .metadata.labels.tier", "app .spec.strategy.type"}, "Recreate", 3, "front"},
		"that a rule leaves": {drift.Rules{{Paths: []string{"/spec/strategy"}}},
			[]string{"app .metadata.labels.tier", "app .spec.replicas"}, "RollingUpdate", 1, "front"},
		"that a rule leaves to who made it": {drift.Rules{{Managers: []string{"kubectl-edit", "kubectl-label"}}}, []string{"app .spec.replicas"}, "RollingUpdate", 1, "back"},
		"that a rule leaves to somebody else": {drift.Rules{{Managers: []string{"hpa"}}},
			[]string{"app .metadata.labels.tier", "app .spec.strategy.type"}, "Recreate", 3, "front"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newScaledOf(t, recreated("example.com/app:1"))
			s.edit("kubectl-edit", s.app(), rolling)
			found := s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore, Report: true})
			s.Expect(changesOf(found)).To(Equal(tc.changes))
			s.Expect(s.strategy()).To(Equal("RollingUpdate"), "it is a report")
			found = s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore})
			s.Expect(changesOf(found)).To(Equal(tc.changes))
			s.Expect(found[0].Repaired).To(BeTrue(), "%+v", found[0])
			s.Expect(s.strategy()).To(Equal(tc.strategy))
			s.expect(tc.replicas, tc.tier)
			s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release, Ignore: tc.ignore}))).To(BeEmpty())
		})
	}
}

// TestUpgradeToAnotherStrategy leaves what rules leave, as any upgrade.
func TestUpgradeToAnotherStrategy(t *testing.T) {
	t.Parallel()
	s := newScaled(t)
	next := s.of("2", recreated("example.com/app:2"))
	next.Ignore = byHPA
	s.Expect(s.settle(next).Phase).To(Equal(addonsv1.AddonReady))
	s.Expect(s.strategy()).To(Equal("Recreate"))
	s.expect(3, "front")
}

// TestRepairOfAStrategyBetweenItsSteps leaves what somebody takes there by a rule.
func TestRepairOfAStrategyBetweenItsSteps(t *testing.T) {
	t.Parallel()
	for step := range 3 {
		t.Run(fmt.Sprint("before write ", step), func(t *testing.T) {
			t.Parallel()
			s := &scaled{env: newEnv(t)}
			s.ns = s.namespace()
			s.want = s.of("1", recreated("example.com/app:1"))
			s.install(s.want)
			s.edit("kubectl-edit", s.app(), rolling)
			cluster, n := s.target.Client, 0
			s.target.Client = hasty{cluster, func() {
				if n++; n == step+1 {
					s.target.Client = cluster
					s.scale("hpa", 4)
				}
			}}
			s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
			s.Expect(n).To(BeNumerically(">", step))
			s.Expect(s.strategy()).To(Equal("Recreate"))
			s.expect(4, "front")
		})
	}
}
