// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
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
			o := e.settle(want)
			e.Expect(o.Reason).To(Equal(tc.reason), o.Message)
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

// Who follows a message's advice doesn't wait for the next try.
func TestAnotherPolicyIsTriedAtOnce(t *testing.T) {
	e, ns := alone(t)
	e.apply("kubectl", strings.Replace(configMap("settings", "y"), "name: settings", "name: settings\n  namespace: "+ns, 1))
	want := e.want(ns, chart{version: "1", manifest: configMap("settings", "x")})
	o := e.settle(want)
	e.Expect(o.Reason).To(Equal(object.ReasonObjectExists), o.Message)
	e.Expect(o.RetryAfter).To(BeNumerically(">", 0), "it is to be tried again by itself, some time")
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	o = e.settle(want)
	e.Expect(o.Reason).To(Equal(deliver.ReasonReady), o.Message)
}

func TestTwoAddonsOneObject(t *testing.T) {
	e, ns := alone(t)
	first := e.want(ns, chart{version: "1", manifest: configMap("shared", "first")})
	e.install(first)
	second := e.want(ns, chart{version: "1", manifest: configMap("shared", "second") + configMap("mine", "x")})
	second.Name, second.Adoption = "other", addonsv1.AdoptionPolicyAdopt
	o := e.settle(second)
	e.Expect(o.Reason).To(Equal(object.ReasonOwnedByOther))
	e.Expect(o.Message).To(And(ContainSubstring("shared"), ContainSubstring(ns+"/demo")))
	e.Expect(e.remove(second.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "shared")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
}

func TestOneOfManyRejected(t *testing.T) {
	e, ns := alone(t)
	good := e.want(ns, chart{version: "1", manifest: configMap("old", "x")})
	e.install(good)
	manifest := "---\napiVersion: v1\nkind: Service\nmetadata: {name: broken}\nspec: {ports: [{port: 99999}]}\n"
	for i := range 39 {
		manifest += configMap(fmt.Sprintf("c%02d", i), "x")
	}
	bad := e.want(ns, chart{version: "2", manifest: manifest})
	o := e.settle(bad)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(o.Reason).To(Equal(object.ReasonObjectRejected))
	e.Expect(o.Message).To(And(ContainSubstring("Service "+ns+"/broken"), ContainSubstring("spec.ports[0].port")))
	e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{40, 39}))
	e.Expect(o.RetryAfter).To(BeNumerically("~", 10*time.Second, time.Second))
	e.Expect(e.get("v1", "ConfigMap", ns, "c38")).NotTo(BeNil())
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
	_, writes := e.meter.total()
	e.Expect(writes).To(Equal(1), "only what failed")

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
			o := e.settle(e.want(ns, empty))
			e.Expect(o.Reason).To(Equal(deliver.ReasonEmptyRendering), o.Message)
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

func TestImmutableField(t *testing.T) {
	e, ns := alone(t)
	e.install(e.want(ns, chart{version: "1", manifest: deployment("app")}))
	o := e.settle(e.want(ns, chart{version: "2", manifest: strings.Replace(deployment("app"), "app: app", "app: other", 2)}))
	e.Expect(o.Reason).To(Equal(object.ReasonImmutableField), o.Message)
	e.Expect(o.Message).To(And(ContainSubstring("spec.selector"), ContainSubstring("immutableFieldPolicy")))
}

func TestKindMissing(t *testing.T) {
	e, ns := alone(t)
	o := e.settle(e.want(ns, chart{version: "1", manifest: configMap("a", "x") + "---\napiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: a}\n"}))
	e.Expect(o.Reason).To(Equal(object.ReasonKindMissing))
	e.Expect(o.Message).To(ContainSubstring("nowhere.example.com"))
	e.Expect(e.remove(deliver.Release{Namespace: ns, Name: "demo"}).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
}

func TestReadinessTimeout(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Expression: "self.data.key == 'go'"}}
	want.ProgressDeadline = 2 * time.Second
	o := e.settle(want)
	e.Expect(o.Reason).To(Equal(deliver.ReasonReadinessTimeout))
	e.Expect(o.Message).To(And(ContainSubstring("1 of 1"), ContainSubstring("self.data.key == 'go'")))
	e.Expect(o.RetryAfter).To(BeZero())

	// It becomes ready later, and that is noticed.
	e.apply("kubectl", strings.Replace(configMap("a", "go"), "name: a", "name: a\n  namespace: "+ns, 1))
	e.Eventually(e.wakeup).WithTimeout(10 * time.Second).Should(Receive())
	o = e.ensure(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonReady), o.Message)
}
