// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

func TestAdoption(t *testing.T) {
	for _, tc := range []struct {
		name   string
		policy addonsv1.AdoptionPolicy
		theirs string
		reason string
		words  []string
	}{
		{"Fail", addonsv1.AdoptionPolicyFail, "x", object.ReasonObjectExists, []string{"ConfigMap", "settings", "kubectl", "adoptionPolicy"}},
		{"AdoptIfEqual, equal", addonsv1.AdoptionPolicyAdoptIfEqual, "x", deliver.ReasonReady, nil},
		{"AdoptIfEqual, different", addonsv1.AdoptionPolicyAdoptIfEqual, "y", object.ReasonObjectExists, []string{".data.key", "kubectl"}},
		{"Adopt, different", addonsv1.AdoptionPolicyAdopt, "y", deliver.ReasonReady, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, ns := alone(t)
			e.apply("kubectl", strings.Replace(configMap("settings", tc.theirs), "name: settings", "name: settings\n  namespace: "+ns, 1))
			want := e.want(ns, chart{version: "1", manifest: configMap("settings", "x") + configMap("other", "x")})
			want.Adoption = tc.policy
			o := e.settleAs(want, tc.reason)
			for _, w := range tc.words {
				e.Expect(o.Message).To(ContainSubstring(w))
			}
			e.Expect(e.get("v1", "ConfigMap", ns, "other")).NotTo(BeNil(), "the others are applied")
			e.remove(want.Release)
			settings := e.get("v1", "ConfigMap", ns, "settings")
			if tc.reason == deliver.ReasonReady {
				e.Expect(settings).To(BeNil())
			} else {
				e.Expect(settings).NotTo(BeNil(), "it was never ours")
			}
		})
	}
}

func TestTwoAddonsOneObject(t *testing.T) {
	e, ns := alone(t)
	first := e.want(ns, chart{version: "1", manifest: configMap("shared", "first")})
	e.install(first)
	second := e.want(ns, chart{version: "1", manifest: configMap("shared", "second") + configMap("mine", "x")})
	second.Name, second.Adoption = "other", addonsv1.AdoptionPolicyAdopt
	o := e.settleAs(second, object.ReasonOwnedByOther)
	e.Expect(o.Message).To(And(ContainSubstring("shared"), ContainSubstring(ns+"/demo")))
	e.Expect(e.remove(second.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "shared")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
}

func TestOneOfManyRejected(t *testing.T) {
	e, ns := alone(t)
	good := e.want(ns, chart{version: "1", manifest: configMap("old", "x")})
	e.install(good)
	manifest := "---\napiVersion: v1\nkind: Service\nmetadata: {name: broken}\nspec: {ports: [{port: 99999}]}\n" +
		"---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: later}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}\n"
	for i := range 39 {
		manifest += configMap(fmt.Sprintf("c%02d", i), "x")
	}
	bad := e.want(ns, chart{version: "2", manifest: manifest})
	o := e.settleAs(bad, object.ReasonObjectRejected)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(o.Message).To(And(ContainSubstring("Service "+ns+"/broken"), ContainSubstring("spec.ports[0].port")))
	e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{41, 40}))
	e.Expect(o.RetryAfter).To(BeNumerically("~", 10*time.Second, time.Second))
	e.Expect(e.get("v1", "ConfigMap", ns, "c38")).NotTo(BeNil())
	e.Expect(e.get("networking.k8s.io/v1", "Ingress", ns, "later")).NotTo(BeNil(), "so are those that come after it")
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil(), "nothing is pruned")
	e.Expect(e.records(ns)[good.Release].Status).To(Equal("failed"))

	// Asked again too early, it makes no request. Then it backs off.
	e.meter.reset()
	again := e.ensure(bad)
	e.Expect(again.Message).To(Equal(o.Message))
	requests, _ := e.meter.total()
	e.Expect(requests).To(BeZero())
	e.clock.step(11 * time.Second)
	e.meter.reset()
	again = e.ensure(bad)
	e.Expect(again.RetryAfter).To(Equal(20 * time.Second))
	e.expectWrites(1, "only what failed")

	o = e.install(e.want(ns, chart{version: "3", manifest: configMap("c00", "x")}))
	e.Expect(o.Revision).To(BeEquivalentTo(3))
	e.Expect(e.get("v1", "ConfigMap", ns, "c38")).To(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
}

// TestEmptyRendering leaves an add-on without any object of its manifest: also if a CRD of
// crds/, or a hook, is rendered still.
func TestEmptyRendering(t *testing.T) {
	bye := []job.Hook{hook("bye", 0, jobText("bye", false), []string{"pre-delete"})}
	for name, shape := range map[string]func(group string) chart{
		"nothing else": func(string) chart { return chart{} },
		"CRDs":         func(group string) chart { return chart{crds: crd(group)} },
		"hooks":        func(string) chart { return chart{hooks: bye} },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := alone(t)
			full, empty := shape(ns+".example.com"), shape(ns+".example.com")
			full.version, full.manifest, empty.version = "1", configMap("a", "x"), "2"
			e.install(e.want(ns, full))
			e.settleAs(e.want(ns, empty), deliver.ReasonEmptyRendering)
			e.Expect(e.get("v1", "ConfigMap", ns, "a")).NotTo(BeNil())
		})
	}
}

func TestSecretsAreNotTold(t *testing.T) {
	e, ns := alone(t)
	for _, data := range []string{`data: {k: "hunter2!"}`, `stringData: {k: {hunter2: hunter2}}`, `type: "hunter2 hunter2"`} {
		o := e.settle(e.want(ns, chart{version: data, manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: b}}\n" + data + "\n"}))
		t.Log(o.Message)
		e.Expect(o.Message).NotTo(ContainSubstring("hunter2"))
	}
}

func TestKindMissing(t *testing.T) {
	e, ns := alone(t)
	o := e.settleAs(e.want(ns, chart{version: "1", manifest: configMap("a", "x") + "---\napiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: a}\n"}), object.ReasonKindMissing)
	e.Expect(o.Message).To(ContainSubstring("nowhere.example.com"))
	e.Expect(e.remove(deliver.Release{Namespace: ns, Name: "demo"}).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
}

func TestReadinessTimeout(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Expression: "self.data.key == 'go'"}}
	want.ProgressDeadline = 2 * time.Second
	o := e.settleAs(want, deliver.ReasonReadinessTimeout)
	e.Expect(o.Message).To(And(ContainSubstring("1 of 1"), ContainSubstring("self.data.key == 'go'")))
	e.Expect(o.RetryAfter).To(BeZero())

	// It becomes ready later, and that is noticed.
	e.apply("kubectl", strings.Replace(configMap("a", "go"), "name: a", "name: a\n  namespace: "+ns, 1))
	e.Eventually(e.wakeup).WithTimeout(10 * time.Second).Should(Receive())
	o = e.ensure(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), o.Message)
}

// TestNewObjects has objects of which one is there already: nobody's new one is applied over it.
func TestNewObjects(t *testing.T) {
	e, ns := beside(t)
	c := chart{version: "1"}
	for i := range 5 {
		c.manifest += configMap(fmt.Sprintf("c%d", i), "ours")
	}
	for _, theirs := range []string{"ours", "theirs"} {
		e.apply("kubectl", namespaced(ns, configMap("c3", theirs)))
		want := e.want(ns, c)
		o := e.settleAs(want, object.ReasonObjectExists)
		e.Expect(o.Message).To(ContainSubstring("c3"))
		there := e.get("v1", "ConfigMap", ns, "c3")
		e.Expect(there.Object["data"]).To(HaveKeyWithValue("key", theirs))
		e.Expect(there.GetManagedFields()).To(HaveLen(1), "nobody else says anything of it")
		e.Expect(there.GetLabels()).To(BeEmpty())
		e.Expect(e.get("v1", "ConfigMap", ns, "c4").Object["data"]).To(HaveKeyWithValue("key", "ours"))
	}
	want := e.want(ns, c)
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "c3").Object["data"]).To(HaveKeyWithValue("key", "ours"))
}

func namespaced(ns, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata:\n", "metadata:\n  namespace: "+ns+"\n")
}

func crd(group string) string {
	return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group)
}

func widget(group, name string) string {
	return fmt.Sprintf("---\napiVersion: %s/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {a: 1}\n", group, name)
}

func TestCRDAndItsResources(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: widget(group, "one") + configMap("a", "x") + crd(group)})
	o := e.install(want)
	e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{3, 3}))
	e.Expect(e.get(group+"/v1", "Widget", ns, "one")).NotTo(BeNil())

	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)).To(BeNil())
}

func TestCRDInUseIsKept(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: crd(group) + widget(group, "ours")})
	e.install(want)
	e.apply("kubectl", strings.Replace(widget(group, "theirs"), "{name: theirs}", "{name: theirs, namespace: "+ns+"}", 1))
	o := e.removed(want.Release)
	e.Expect(o.Message).To(And(ContainSubstring("widgets."+group), ContainSubstring(ns+"/theirs")))
	e.Expect(e.get(group+"/v1", "Widget", ns, "theirs")).NotTo(BeNil())
	e.Expect(e.get(group+"/v1", "Widget", ns, "ours")).To(BeNil())
	kept := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	e.Expect(kept.GetLabels()).To(BeEmpty(), "another add-on may adopt it")
}

func TestCRDsOfTheCRDsDirectory(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	c := chart{version: "1", crds: crd(group), manifest: widget(group, "one")}
	want := e.want(ns, c)
	e.install(want)
	c.manifest = widget(group, "two")
	other := e.wantNamed("other", ns, c) // many charts bring the same CRDs
	e.install(other)
	e.Expect(e.remove(other.Release).Gone).To(BeTrue())
	o := e.remove(want.Release)
	e.Expect(o.Message).To(ContainSubstring("crds/"))
	e.Expect(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)).NotTo(BeNil())
}

func TestNamespaceInUseIsKept(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	manifest := ""
	for _, suffix := range []string{"empty", "used"} {
		manifest += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %[1]s-%[2]s}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: %[1]s-%[2]s}\n", ns, suffix)
	}
	want := e.want(ns, chart{version: "1", manifest: manifest})
	e.install(want)
	e.apply("kubectl", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: "+ns+"-used}\n")
	o := e.removed(want.Release)
	e.Expect(o.Message).To(And(ContainSubstring(ns+"-used"), ContainSubstring("theirs")))
	e.Expect(e.get("v1", "Namespace", "", ns+"-empty")).To(BeNil())
	e.Expect(e.get("v1", "Namespace", "", ns+"-used")).NotTo(BeNil())
	e.Expect(o).To(HaveField("Phase", BeEmpty()))
}

// wantNamed is an add-on with a name of its own.
func (e *env) wantNamed(name, ns string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.Name = name
	return want
}

func clusterScoped(crd string) string {
	return strings.Replace(crd, "scope: Namespaced", "scope: Cluster", 1)
}

// TestClusterScopedObjectOfALaterCRD begins with an object whose kind comes with another
// add-on, later: once applied, the object isn't taken for one of an earlier revision.
func TestClusterScopedObjectOfALaterCRD(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			e, ns := alone(t)
			group := ns + ".example.com"
			policies := e.wantNamed("policies", ns, chart{version: "1", manifest: widget(group, "policy") + configMap("x", "a")})
			e.settleAs(policies, object.ReasonKindMissing)
			e.install(e.wantNamed("engine", ns, chart{version: "1", manifest: clusterScoped(crd(group))}))

			e.clock.step(11 * time.Second)
			if restart {
				e.restart()
			}
			e.install(policies)
			policy := e.get(group+"/v1", "Widget", "", "policy")
			e.Expect(policy).NotTo(BeNil(), "the add-on is ready")
			e.Expect(policy.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "policies"))

			e.Expect(e.remove(policies.Release).Gone).To(BeTrue())
			e.Expect(e.get(group+"/v1", "Widget", "", "policy")).To(BeNil(), "it is in the inventory")
		})
	}
}

// TestClusterScopedObjectOfACRDInAHook has the CRD as a hook of the same chart.
func TestClusterScopedObjectOfACRDInAHook(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	hooks := []job.Hook{{
		Name: "widgets." + group, Kind: "CustomResourceDefinition", Path: "demo/templates/crd",
		Manifest: clusterScoped(crd(group)), Events: []string{"pre-install"},
	}}
	want := e.want(ns, chart{version: "1", manifest: widget(group, "policy") + configMap("x", "a"), hooks: hooks})
	if o := e.settle(want); o.Reason == object.ReasonKindMissing { // discovery may be a moment behind
		e.clock.step(11 * time.Second)
		e.install(want)
	}
	e.Expect(e.get(group+"/v1", "Widget", "", "policy")).NotTo(BeNil())
}

// TestKeyThatLeftStringDataGoes from the Secret. The record has the manifest as it was rendered.
func TestKeyThatLeftStringDataGoes(t *testing.T) {
	e, ns := alone(t)
	secret := func(data string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {plain: eA==, b: b3RoZXI=}\nstringData: {" + data + "}\n"
	}
	e.install(e.want(ns, chart{version: "1", manifest: secret("a: one, old: two")}))
	e.install(e.want(ns, chart{version: "2", manifest: secret("a: three, b: wins")}))
	data, _, err := unstructured.NestedStringMap(e.get("v1", "Secret", ns, "s").Object, "data")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(data).To(Equal(map[string]string{"plain": "eA==", "a": "dGhyZWU=", "b": "d2lucw=="}))
	releases := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns)))
	deployed, err := releases.Deployed("demo")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(deployed.(*helmrelease.Release).Manifest).To(Equal(secret("a: three, b: wins")))
}
