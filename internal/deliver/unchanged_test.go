// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// configMaps are named a, b, c and d. The first one has the value.
func configMaps(version, value string) chart {
	return chart{version: version, manifest: configMap("a", value) + configMap("b", "same") + configMap("c", "same") + configMap("d", "same")}
}

// applied lists the names of ConfigMaps that were applied since the meter was reset.
func (e *env) applied() []string {
	var names []string
	for _, line := range e.meter.log {
		if _, name, is := strings.Cut(line, "/configmaps/"); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// seen is what a watch shows of ConfigMaps.
func (e *env) seen(release deliver.Release) func(deliver.ObjectKey) (drift.Fields, bool) {
	return func(key deliver.ObjectKey) (drift.Fields, bool) {
		o := e.get("v1", "ConfigMap", key.Namespace, key.Name)
		if key.Kind != "ConfigMap" || o == nil {
			return 0, key.Kind == "ConfigMap"
		}
		return drift.FieldsOf(o.GetManagedFields(), object.FieldManager(release)), true
	}
}

// TestUpgradeAppliesWhatDiffers upgrades an add-on of which one object is to change. Others were
// changed by people, or are gone: these are applied, too, and nothing else is.
func TestUpgradeAppliesWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("watched=%t", watched), func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, configMaps("1", "one"))
			e.install(want)
			upgrade := func(version, value string) {
				t.Helper()
				want := e.want(ns, configMaps(version, value))
				if watched {
					want.Seen = e.seen(want.Release)
				}
				e.meter.reset()
				e.install(want)
			}
			upgrade("2", "two")
			e.Expect(e.applied()).To(Equal([]string{"a"}))

			e.edit("somebody", e.get("v1", "ConfigMap", ns, "b"), `{"data":{"key":"other"}}`)
			e.Expect(e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "c"))).To(Succeed())
			upgrade("3", "three")
			e.Expect(e.applied()).To(Equal([]string{"a", "b", "c"}))
			for _, name := range []string{"b", "c"} {
				e.Expect(e.get("v1", "ConfigMap", ns, name).Object["data"]).To(HaveKeyWithValue("key", "same"))
			}

			upgrade("4", "four")
			e.Expect(e.applied()).To(Equal([]string{"a"}), "what was set right is known again")
			e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release}))).To(BeEmpty())
			e.meter.reset()
			e.remove(want.Release)
			e.Expect(e.applied()).To(Equal([]string{"a", "b", "c", "d"}), "it is still known whose they are")
		})
	}
}

// TestUpgradeLeavesCRDsThatAreTheSame upgrades an add-on whose crds/ stay the same: they aren't written. A CRD
// that somebody has changed is, and so are all once one of them is another.
func TestUpgradeLeavesCRDsThatAreTheSame(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("watched=%t", watched), func(t *testing.T) {
			e, ns := beside(t)
			group := ns + ".example.com"
			get := func() *unstructured.Unstructured {
				return e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
			}
			install := func(version, crds string) (writes int) {
				t.Helper()
				want := e.want(ns, chart{version: version, crds: crds, manifest: configMap("a", version) + widget(group, "one")})
				if watched {
					want.Seen = func(key deliver.ObjectKey) (drift.Fields, bool) {
						if key.Kind != "CustomResourceDefinition" || get() == nil {
							return 0, false
						}
						return drift.FieldsOf(get().GetManagedFields(), object.FieldManager(want.Release)), true
					}
				}
				e.meter.reset()
				e.install(want)
				for _, line := range e.meter.log {
					if strings.Contains(line, "/customresourcedefinitions/") {
						writes++
					}
				}
				return writes
			}
			e.Expect(install("1", crd(group))).To(Equal(1))
			e.Expect(install("2", crd(group))).To(BeZero())
			e.restart()
			e.Expect(install("3", crd(group))).To(BeZero(), "a restart forgets nothing of it")

			e.edit("somebody", get(), `{"spec":{"names":{"shortNames":["wd"]}},"metadata":{"labels":{"addons.cluster.x-k8s.io/addon":"other"}}}`)
			e.Expect(install("4", crd(group))).To(Equal(1), "it isn't as it was applied")
			e.Expect(get().GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
			e.Expect(install("5", strings.Replace(crd(group), "singular: widget", "singular: widget, shortNames: [wdg]", 1))).To(Equal(1))
			shortNames, _, _ := unstructured.NestedStringSlice(get().Object, "spec", "names", "shortNames")
			e.Expect(shortNames).To(Equal([]string{"wdg"}))
		})
	}
}

// TestUpgradeOfAnObjectMadeAnew has somebody make an object again that is to stay as it is. It is no
// longer the add-on's, so the upgrade doesn't pass over it, and asks the adoption policy.
func TestUpgradeOfAnObjectMadeAnew(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	e.Expect(e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "b"))).To(Succeed())
	e.apply("somebody", strings.Replace(configMap("b", "theirs"), "name: b", "name: b\n  namespace: "+ns, 1))
	next := e.want(ns, configMaps("2", "two"))
	e.settleAs(next, object.ReasonObjectExists)
	e.Expect(e.get("v1", "ConfigMap", ns, "b").Object["data"]).To(HaveKeyWithValue("key", "theirs"))
	next.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(next) // at once
	e.Expect(e.get("v1", "ConfigMap", ns, "b").Object["data"]).To(HaveKeyWithValue("key", "same"))
}

// TestUpgradeOfAnObjectThatWasRestored has a tool bring an object back with its managedFields, as of another time. The
// fields are those that were applied, and their values aren't.
func TestUpgradeOfAnObjectThatWasRestored(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, configMaps("1", "one"))
	e.install(want)
	backup := e.get("v1", "ConfigMap", ns, "b")
	e.Expect(e.target.Client.Delete(e.ctx, backup.DeepCopy())).To(Succeed())
	restored := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "earlier"}}}
	restored.SetAPIVersion("v1")
	restored.SetKind("ConfigMap")
	restored.SetNamespace(ns)
	restored.SetName("b")
	restored.SetLabels(backup.GetLabels())
	restored.SetAnnotations(backup.GetAnnotations())
	manager := object.FieldManager(want.Release)
	e.Expect(e.target.Client.Apply(e.ctx, client.ApplyConfigurationFromUnstructured(restored), client.FieldOwner(manager))).To(Succeed())
	e.Expect(drift.FieldsOf(e.get("v1", "ConfigMap", ns, "b").GetManagedFields(), manager)).To(Equal(drift.FieldsOf(backup.GetManagedFields(), manager)))
	e.install(e.want(ns, configMaps("2", "two")))
	e.Expect(e.get("v1", "ConfigMap", ns, "b").Object["data"]).To(HaveKeyWithValue("key", "same"))
}

// TestUpgradeAfterAFailedOne applies all objects: what the failed one left isn't known.
func TestUpgradeAfterAFailedOne(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	failing := configMaps("2", "two")
	failing.manifest = strings.Replace(failing.manifest, "name: b", "name: not/b", 1)
	e.Expect(e.settle(e.want(ns, failing)).Phase).To(Equal(addonsv1.AddonFailed))
	e.meter.reset()
	e.install(e.want(ns, configMaps("3", "three")))
	e.Expect(e.applied()).To(Equal([]string{"a", "b", "c", "d"}))
}

// TestUpgradeAwaitsWhatStays doesn't take an object for ready because the upgrade leaves it as it
// is, even where a watch shows it.
func TestUpgradeAwaitsWhatStays(t *testing.T) {
	e, ns := beside(t)
	setReady := func(value string) {
		t.Helper()
		o := e.get("v1", "ConfigMap", ns, "b")
		e.Expect(e.target.Client.Patch(e.ctx, o, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"data":{"ready":%q}}`, value)), client.FieldOwner("somebody"))).To(Succeed())
	}
	e.install(e.want(ns, configMaps("1", "one")))
	setReady("no")
	want := e.want(ns, configMaps("2", "two"))
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "b", Expression: "self.data.ready == 'yes'"}}
	want.Seen = e.seen(want.Release)
	e.meter.reset()
	e.ensureAs(want, deliver.ReasonWaitingForObjects)
	e.Expect(e.applied()).To(Equal([]string{"a"}))
	setReady("yes")
	e.install(want)
}

// ofFacts is an add-on of a chart as it is rendered by facts about the cluster.
func (e *env) ofFacts(ns, facts string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.Digest = func(context.Context, string) (string, error) { return facts, nil }
	want.DigestBy = func(used string) string { return used }
	want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
		r := c.render(e.t)
		r.Digest, r.FactsUsed = facts, facts
		r.Generated, r.Values = job.Generated{}, map[string]any{} // as of a chart that makes nothing up, with its own values
		return r, nil
	}
	return want
}

// TestOtherFactsWithTheSameResult makes no revision when a cluster has other kinds, and the chart doesn't mind.
func TestOtherFactsWithTheSameResult(t *testing.T) {
	e, ns := beside(t)
	of := func(facts, value string) deliver.Desired {
		return e.ofFacts(ns, facts, chart{version: "1", manifest: configMap("a", value)})
	}
	e.install(of("one", "x"))
	e.Expect(e.install(of("two", "x")).Revision).To(Equal(int32(1)))
	e.Expect(e.records(ns)[of("two", "x").Release].FactsUsed).To(Equal("two"))
	e.restart()
	e.meter.reset()
	e.Expect(e.install(of("two", "x")).Revision).To(Equal(int32(1)))
	e.expectWrites(0)
	unquoted := e.ofFacts(ns, "three", chart{version: "1", manifest: strings.Replace(configMap("a", "x"), `"x"`, "x", 1)})
	o := e.install(unquoted)
	e.Expect(o.Revision).To(Equal(int32(1)), "quotes are no other content")
	e.Expect(o.Message).To(BeEmpty(), "and nobody would see another object")
	e.Expect(e.install(of("four", "y")).Revision).To(Equal(int32(2)), "other content is another revision")
}

// TestOtherFactsRestartNoPod has a cluster's new kinds change a checksum of a Secret that the chart writes in another form. The
// pods stay until somebody changes the add-on, or asks.
func TestOtherFactsRestartNoPod(t *testing.T) {
	long.InCI(t)
	e, ns := beside(t)
	of := func(facts, checksum, password string) deliver.Desired {
		annotated := "template: {metadata: {annotations: {checksum/secret: " + checksum + "}, labels: {app: app}}, "
		workload := strings.Replace(deployment("app"), "template:\n    metadata: {labels: {app: app}}\n    spec: {containers: [{name: c, image: example.com/app:1}]}",
			annotated+"spec: {containers: [{name: c, image: example.com/app:1}]}}", 1)
		migration := strings.Replace(jobText("migrate", false), "template: {", annotated, 1)
		return e.ofFacts(ns, facts, chart{
			version: "1", manifest: "---\napiVersion: v1\nkind: Secret\nmetadata: {name: app}\n" + password + "\n" + workload,
			hooks: []job.Hook{hook("migrate", 0, migration, []string{"pre-upgrade"})},
		})
	}
	checksum := func() string {
		annotations, _, _ := unstructured.NestedStringMap(e.get("apps/v1", "Deployment", ns, "app").Object, "spec", "template", "metadata", "annotations")
		return annotations["checksum/secret"]
	}
	first, other := of("one", "abc", "data: {password: czNjcmV0}"), of("two", "def", "stringData: {password: s3cret}")
	e.install(first)
	o := e.install(other)
	e.Expect(o.Revision).To(Equal(int32(1)))
	e.Expect(o.Message).To(ContainSubstring("Deployment " + ns + "/app"))
	e.Expect(checksum()).To(Equal("abc"))
	e.Expect(e.get("batch/v1", "Job", ns, "migrate")).To(BeNil(), "no hook ran")
	e.restart()
	e.Expect(e.install(other).Message).To(Equal(o.Message), "it is still known")
	more := of("more", "def", "data: {password: czNjcmV0}\n"+"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: monitor}")
	o = e.install(more)
	e.Expect(o.Revision).To(Equal(int32(2)), "the chart has another object")
	e.Expect(o.Message).To(ContainSubstring("Deployment " + ns + "/app"))
	e.Expect(e.get("v1", "ServiceAccount", ns, "monitor")).NotTo(BeNil())
	e.Expect(checksum()).To(Equal("abc"), "and pods stay")
	e.Expect(e.install(of("three", "abc", "data: {password: czNjcmV0}")).Message).To(BeEmpty(), "the kinds went again")

	e.install(of("four", "def", "data: {password: czNjcmV0}"))
	unpolicied := of("five", "def", "data: {password: czNjcmV0}")
	unpolicied.Spec = "other" // as without an adoption policy
	e.Expect(e.install(unpolicied).Revision).To(Equal(int32(3)), "nothing is asked for that makes other objects")
	e.Expect(checksum()).To(Equal("abc"))
	changed := of("six", "def", "data: {password: czNjcmV0}")
	changed.DigestBy = func(used string) string { return used + " with other values" }
	o = e.install(changed)
	e.Expect(o.Revision).To(Equal(int32(4)), "it is asked for")
	e.Expect(o.Message).To(BeEmpty())
	e.Expect(checksum()).To(Equal("def"))

	again := of("seven", "ghi", "data: {password: czNjcmV0}")
	again.Again = true
	e.Expect(e.install(again).Revision).To(Equal(int32(5)), "it is asked for, too")
	e.Expect(checksum()).To(Equal("ghi"))
	renewed := of("eight", "ghi", "data: {password: b3RoZXI=}")
	e.Expect(e.install(renewed).Revision).To(Equal(int32(6)), "another password is another content")
}

// TestOtherFactsWithOtherHooks has a cluster's new kinds change a hook of a chart whose objects stay the same.
func TestOtherFactsWithOtherHooks(t *testing.T) {
	e, ns := beside(t)
	of := func(facts, image, weight string) deliver.Desired {
		text := strings.Replace(jobText("migrate", false), "example.com/app:1", image, 1)
		text = strings.Replace(text, "helm.sh/hook: any", "helm.sh/hook: test, helm.sh/hook-weight: '"+weight+"'", 1)
		return e.ofFacts(ns, facts, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("migrate", 0, text, []string{"test"})}})
	}
	e.install(of("one", "example.com/app:1", "1"))
	e.Expect(e.install(of("two", "example.com/app:1", "1")).Revision).To(Equal(int32(1)))
	e.Expect(e.install(of("three", "example.com/app:2", "1")).Revision).To(Equal(int32(2)))
	e.Expect(e.install(of("four", "example.com/app:2", "2")).Revision).To(Equal(int32(3)))
}
