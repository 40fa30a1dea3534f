// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// preview plans a delivery, and expects that this writes nothing.
func (e *env) preview(want deliver.Desired) plan.Addon {
	e.t.Helper()
	want.Proof = e.proofs.of(want.Release)
	e.meter.reset()
	a, err := e.d.Preview(e.ctx, e.target, want, preview.NewComing(nil))
	e.Expect(err).NotTo(HaveOccurred())
	e.expectWrites(0, "a plan")
	return a
}

// planned returns what a plan says of objects, as "Action Kind name", sorted.
func planned(a plan.Addon) []string {
	var all []string
	for _, c := range a.Changes {
		all = append(all, fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.Name))
	}
	slices.Sort(all)
	return all
}

// changeOf returns what a plan says of an object.
func changeOf(a plan.Addon, name string) plan.Change {
	at := slices.IndexFunc(a.Changes, func(c plan.Change) bool { return c.Name == name })
	if at < 0 {
		return plan.Change{}
	}
	return a.Changes[at]
}

// written lists the objects that were written or deleted since the meter was reset, as "resource/name", but for records.
func (e *env) written() []string {
	var all []string
	for _, line := range e.meter.log {
		verb, path, _ := strings.Cut(line, " ")
		parts := strings.Split(path, "/")
		if verb == "POST" || len(parts) < 2 || strings.Contains(path, "/secrets/sh.helm.release") {
			continue
		}
		all = append(all, strings.Join(parts[len(parts)-2:], "/"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// writes lists the objects that a delivery writes or deletes by a plan, and those that it may write.
func writes(a plan.Addon) (written, maybe []string) {
	for _, c := range a.Changes {
		name := resourceOf(c) + "/" + c.Name
		switch c.Action {
		case plan.Keep, plan.Unknown, plan.Refuse: // its labels go; it is tried, and refused
			maybe = append(maybe, name)
		default:
			written = append(written, name)
		}
	}
	slices.Sort(written)
	return slices.Compact(written), maybe
}

// expectPlanned expects that what was written since the meter was reset is what a plan said.
func (e *env) expectPlanned(a plan.Addon, why string) {
	e.t.Helper()
	wanted, maybe := writes(a)
	is := slices.DeleteFunc(e.written(), func(name string) bool { return slices.Contains(maybe, name) })
	e.Expect(is).To(HaveExactElements(wanted), "%s: %+v", why, a.Changes)
}

// TestPlanWithRecordedValues plans the takeover of a release with the values that Helm has recorded. None of them are told, also of
// those that the chart turns into other words.
func TestPlanWithRecordedValues(t *testing.T) {
	e, ns := beside(t)
	install := action.NewInstall(helm(e, ns))
	install.ReleaseName, install.Namespace = "demo", ns
	install.WaitStrategy, install.Timeout = helmkube.HookOnlyStrategy, time.Minute
	_, err := install.Run(theirChart("1", configMap("a", "before")+configMap("fixed", "x")+"immutable: true\n"), map[string]any{"token": "sentinel-one"})
	must.Succeed(t, err)
	var given []map[string]any
	want := e.want(ns, chart{})
	want.Adoption, want.TakesValues = addonsv1.AdoptionPolicyAdopt, true
	want.Render = func(_ context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		given = append(given, in.Values)
		is := chart{version: "1.0.0", manifest: configMap("a", "SENTINEL-ONE") + configMap("fixed", "sentinel-one") + "immutable: true\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: odd}\nspec: {type: sentinel-one, ports: [{port: 80}]}\n"}.render(t)
		is.Values = in.Values
		return is, nil
	}
	a := e.preview(want)
	e.Expect(given).To(Equal([]map[string]any{{"token": "sentinel-one"}}))
	e.Expect(planned(a)).To(Equal([]string{"Adopt ConfigMap a", "Refused ConfigMap fixed", "Refused Service odd"}))
	e.Expect(changeOf(a, "a").Altered).To(ContainElement(And(HaveField("Path", ".data.key"), HaveField("New", plan.Hidden))))
	e.Expect(strings.ToLower(fmt.Sprint(a))).NotTo(ContainSubstring("sentinel"))
	want.TakesValues = false
	e.preview(want)
	e.Expect(given[1]).To(BeNil(), "a delivery has the values of the stack")
}

// TestPlanIsTheDelivery plans installations, upgrades and removals, and compares each plan with what is written then.
func TestPlanIsTheDelivery(t *testing.T) {
	long.Test(t)
	hook := job.Hook{
		Name: "before", Kind: "ConfigMap", Events: []string{"pre-upgrade"},
		Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, annotations: {helm.sh/hook: pre-upgrade}}\n",
	}
	fixed := func(value string) string { return configMap("a", value) + "immutable: true\n" }
	kept := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
	for name, tc := range map[string]struct {
		first, then chart
		by          func(*env, string)
		want        func(*deliver.Desired)
		planned     []string
		state       addonsv1.PlanState
		check       func(*env, plan.Addon)
	}{
		"an installation": {
			then: configMaps("1", "one"), state: plan.Changed,
			planned: []string{"Create ConfigMap a", "Create ConfigMap b", "Create ConfigMap c", "Create ConfigMap d"},
		},
		"nothing": {first: configMaps("1", "one"), then: configMaps("1", "one"), state: plan.Same},
		"an upgrade": {
			first: configMaps("1", "one"), state: plan.Changed,
			then:    chart{version: "2", manifest: configMap("a", "two") + configMap("b", "same") + configMap("e", "new") + kept, hooks: []job.Hook{hook}},
			planned: []string{"Change ConfigMap a", "Create ConfigMap e", "Create ConfigMap kept", "Delete ConfigMap c", "Delete ConfigMap d", "Hook ConfigMap before"},
			check: func(e *env, a plan.Addon) {
				f := changeOf(a, "a").Altered
				e.Expect(f).To(HaveLen(1))
				e.Expect([]any{f[0].Path, f[0].Cause, f[0].Old, f[0].New}).To(Equal([]any{".data.key", plan.ByManifest, `"one"`, `"two"`}))
			},
		},
		"what is kept": {
			first: chart{version: "1", manifest: configMap("a", "one") + kept}, then: chart{version: "2", manifest: configMap("a", "one")},
			state: plan.Changed, planned: []string{"Keep ConfigMap kept"},
		},
		"drift": {
			first: configMaps("1", "one"), then: configMaps("2", "two"), state: plan.Changed,
			by: func(e *env, ns string) {
				e.edit("somebody", e.get("v1", "ConfigMap", ns, "b"), `{"data":{"key":"other"}}`)
				e.edit("somebody", e.get("v1", "ConfigMap", ns, "c"), `{"data":{"more":"of others"}}`)
			},
			planned: []string{"Change ConfigMap a", "Change ConfigMap b"},
			check: func(e *env, a plan.Addon) {
				f := changeOf(a, "b").Altered
				e.Expect(f).To(HaveLen(1))
				e.Expect([]any{f[0].Path, f[0].Cause, f[0].Old, f[0].New}).To(Equal([]any{".data.key", plan.ByDrift, plan.Hidden, `"same"`}))
			},
		},
		"drift that stays": {
			first: configMaps("1", "one"), then: configMaps("2", "two"), state: plan.Changed,
			by: func(e *env, ns string) {
				e.edit("somebody", e.get("v1", "ConfigMap", ns, "a"), `{"data":{"key":"other"}}`)
			},
			want: func(d *deliver.Desired) {
				d.Ignore = drift.Rules{addonsv1.DriftIgnoreRule{Paths: []string{"/data/key"}}}
			},
			planned: []string{"Change ConfigMap a"},
			check:   func(e *env, a plan.Addon) { e.Expect(changeOf(a, "a").Altered).To(BeEmpty()) },
		},
		"others' objects": {
			then: configMaps("1", "one"), state: plan.Refused,
			by: func(e *env, ns string) {
				e.apply("somebody", namespaced(ns, configMap("a", "theirs-alone")))
			},
			planned: []string{"Create ConfigMap b", "Create ConfigMap c", "Create ConfigMap d", "Refused ConfigMap a"},
			check: func(e *env, a plan.Addon) {
				e.Expect(changeOf(a, "a").Reason).To(Equal(object.ReasonObjectExists))
				e.Expect(fmt.Sprint(a)).NotTo(ContainSubstring("theirs-alone"))
			},
		},
		"adoption": {
			then: configMaps("1", "one"), state: plan.Changed,
			by: func(e *env, ns string) {
				e.apply("somebody", namespaced(ns, configMap("a", "theirs-alone")))
			},
			want:    func(d *deliver.Desired) { d.Adoption = addonsv1.AdoptionPolicyAdopt },
			planned: []string{"Adopt ConfigMap a", "Create ConfigMap b", "Create ConfigMap c", "Create ConfigMap d"},
			check:   func(e *env, a plan.Addon) { e.Expect(fmt.Sprint(a)).NotTo(ContainSubstring("theirs-alone")) },
		},
		"a field that can't be changed": {
			first: chart{version: "1", manifest: fixed("one")}, then: chart{version: "2", manifest: fixed("two")},
			state: plan.Refused, planned: []string{"Refused ConfigMap a"},
			check: func(e *env, a plan.Addon) { e.Expect(changeOf(a, "a").Reason).To(Equal(object.ReasonImmutableField)) },
		},
		"a field that can't be changed, made again": {
			first: chart{version: "1", manifest: fixed("one")}, then: chart{version: "2", manifest: fixed("two")},
			want: func(d *deliver.Desired) { d.Recreate = true }, state: plan.Changed, planned: []string{"Recreate ConfigMap a"},
		},
		"a Secret": {
			first: chart{version: "1", manifest: configMap("a", "one") + secretOf("sentinel-one")},
			then:  chart{version: "2", manifest: configMap("a", "has sentinel-two in it") + secretOf("sentinel-two")},
			state: plan.Changed, planned: []string{"Change ConfigMap a", "Change Secret s"},
			check: func(e *env, a plan.Addon) {
				e.Expect(changeOf(a, "s").Altered).To(HaveLen(1))
				e.Expect(changeOf(a, "s").Altered[0].Path).To(Equal(".data.key"))
				for _, secret := range []string{"sentinel", "c2VudGluZWw"} {
					e.Expect(fmt.Sprint(a)).NotTo(ContainSubstring(secret))
				}
			},
		},
		"a kind that is missing": {
			then:  chart{version: "1", manifest: configMap("a", "one") + "---\napiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: t}\n"},
			state: plan.Refused, planned: []string{"Create ConfigMap a", "Refused Thing t"},
			check: func(e *env, a plan.Addon) { e.Expect(changeOf(a, "t").Reason).To(Equal(object.ReasonKindMissing)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			if tc.first.version != "" {
				e.install(e.want(ns, tc.first))
			}
			if tc.by != nil {
				tc.by(e, ns)
			}
			want := e.want(ns, tc.then)
			if tc.want != nil {
				tc.want(&want)
			}
			a := e.preview(want)
			e.Expect(planned(a)).To(Equal(tc.planned), "%+v", a)
			e.Expect(a.State).To(Equal(tc.state), "%+v", a)
			if tc.check != nil {
				tc.check(e, a)
			}
			e.meter.reset()
			o := e.settle(want)
			e.expectPlanned(a, name)
			if refused := tc.state == plan.Refused; refused {
				at := slices.IndexFunc(a.Changes, func(c plan.Change) bool { return c.Action == plan.Refuse })
				e.Expect(o.Reason).To(Equal(a.Changes[at].Reason), "it is refused for the same reason")
				return
			}
			removal, err := e.d.PreviewRemoval(e.ctx, e.target, want.Release, e.proofs.of(want.Release), preview.NewComing(nil))
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(removal.Removed).To(BeTrue())
			e.meter.reset()
			e.removed(want.Release)
			e.expectPlanned(removal, name+", removed")
		})
	}
}

func secretOf(value string) string {
	return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: " + value + "}\n"
}

// TestPlanNamesTheClaims plans 500 objects in random states, and compares what the plan says of each with what becomes of it.
func TestPlanNamesTheClaims(t *testing.T) {
	long.Test(t)
	const each = 100
	for round, policy := range []addonsv1.AdoptionPolicy{addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdopt, addonsv1.AdoptionPolicyAdoptIfEqual, addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdopt} {
		t.Run(fmt.Sprint(round, policy), func(t *testing.T) {
			e, ns := beside(t)
			random := rand.New(rand.NewPCG(uint64(round), 43))
			has := round > 2 // a revision before
			manifest := func(version string) (all string) {
				for i := range each {
					all += configMap(fmt.Sprintf("o%d", i), version)
				}
				return all
			}
			own := map[string]types.UID{}
			if has {
				e.install(e.want(ns, chart{version: "1", manifest: manifest("one")}))
				for i := range each {
					name := fmt.Sprintf("o%d", i)
					own[name] = e.get("v1", "ConfigMap", ns, name).GetUID()
				}
			}
			for i := range each {
				e.scatter(random, ns, fmt.Sprintf("o%d", i))
			}
			want := e.want(ns, chart{version: "2", manifest: manifest("two")})
			want.Adoption, want.Leaving = policy, []deliver.Release{{Namespace: ns, Name: "leaving"}}
			a := e.preview(want)
			before := map[string]*unstructured.Unstructured{}
			for i := range each {
				name := fmt.Sprintf("o%d", i)
				before[name] = e.get("v1", "ConfigMap", ns, name)
			}
			_ = e.ensure(want)
			for name, was := range before {
				c, is := changeOf(a, name), e.get("v1", "ConfigMap", ns, name)
				var became addonsv1.PlanAction
				switch {
				case was == nil && is != nil:
					became = plan.Create
				case is.GetResourceVersion() == was.GetResourceVersion() && c.Action == plan.Update && len(c.Altered) == 0: // it has that value already
					became = plan.Update
				case is.GetResourceVersion() == was.GetResourceVersion():
					became = plan.Refuse
				case own[name] != "" && (was.GetUID() == own[name] || was.GetLabels()[addonsv1.AddonLabel] == want.Name), managed(was, object.FieldManager(want.Release)):
					became = plan.Update
				default:
					became = plan.Adopt
				}
				var labels, managers any
				if was != nil {
					labels, managers = was.GetLabels(), was.GetManagedFields()
				}
				if c.Action != became {
					e.t.Errorf("%s: the plan says %s (%s), it became %s; it was %v of %v", name, c.Action, c.Message, became, labels, managers)
				}
			}
		})
	}
}

func managed(o *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// scatter brings an object into a random state.
func (e *env) scatter(random *rand.Rand, ns, name string) {
	e.t.Helper()
	head := fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: %s\n  name: %s\n", ns, name)
	labels := func(of string) string {
		return fmt.Sprintf("  labels: {%s: %s, %s: %s}\n", addonsv1.AddonLabel, of, addonsv1.AddonNamespaceLabel, ns)
	}
	value := []string{"one", "two", "others"}[random.IntN(3)]
	data := "data: {key: " + value + "}\n"
	takeAway := func() {
		if o := e.get("v1", "ConfigMap", ns, name); o != nil {
			e.Expect(e.target.Client.Delete(e.ctx, o)).To(Succeed())
		}
	}
	if random.IntN(2) == 0 {
		takeAway()
	}
	switch random.IntN(9) {
	case 0:
		takeAway()
	case 1: // as it is
	case 2:
		e.apply("somebody", head+data)
	case 3:
		e.apply("somebody", head+labels("demo")+data) // a copy
	case 4:
		e.apply("somebody", head+labels("other")+data)
	case 5:
		e.apply(object.FieldManager(deliver.Release{Namespace: ns, Name: "leaving"}), head+labels("leaving")+data)
	case 6:
		e.apply(object.FieldManager(deliver.Release{Namespace: ns, Name: "demo"}), head+labels("demo")+data)
	case 7:
		e.apply("somebody", head+"  annotations: {"+object.KeptByAnnotation+": "+ns+"/demo}\n"+data)
	case 8:
		e.apply(object.HelmManager, head+"  annotations: {"+object.HelmReleaseName+": demo, "+object.HelmReleaseNamespace+": "+ns+"}\n"+data)
	}
}

// resourceOf returns the resource of an object.
func resourceOf(o plan.Change) string {
	resource, _ := apimeta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	return resource.Resource
}
