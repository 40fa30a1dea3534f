// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// keptConfigMap stays when its release goes.
func keptConfigMap(value string) string {
	return strings.Replace(configMap("kept", value), "name: kept", "name: kept\n  annotations: {helm.sh/resource-policy: keep}", 1)
}

// TestReleaseClaimsAgainWhatItKept by the resource policy; no other release does.
func TestReleaseClaimsAgainWhatItKept(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: keptConfigMap("one") + configMap("x", "a")})
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "kept").GetAnnotations()).To(HaveKeyWithValue(object.KeptByAnnotation, ns+"/demo"))

	other := e.wantNamed("other", ns, chart{version: "1", manifest: keptConfigMap("other")})
	o := e.settle(other)
	e.Expect(o.Reason).To(Equal(object.ReasonObjectExists))
	e.Expect(o.Message).To(And(ContainSubstring(want.String()), Not(ContainSubstring("helm"))), "nobody used Helm")
	e.Expect(e.remove(other.Release).Gone).To(BeTrue())

	e.install(e.want(ns, chart{version: "2", manifest: keptConfigMap("two") + configMap("x", "a")}))
	kept := e.get("v1", "ConfigMap", ns, "kept")
	e.Expect(kept.Object["data"]).To(Equal(map[string]any{"key": "two"}))
	e.Expect(kept.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(kept.GetAnnotations()).NotTo(HaveKey(object.KeptByAnnotation))
	for _, entry := range kept.GetManagedFields() {
		e.Expect(entry.Manager).To(Equal("chandler/" + ns + "/demo"))
	}
}

// TestReleaseClaimsAgainACRDThatWasInUse instead of telling to delete it, with people's objects.
func TestReleaseClaimsAgainACRDThatWasInUse(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: crd(group)})
	e.install(want)
	e.apply("kubectl", strings.Replace(widget(group, "theirs"), "{name: theirs}", "{name: theirs, namespace: "+ns+"}", 1))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())

	o := e.settle(e.wantNamed("other", ns, chart{version: "1", manifest: crd(group)}))
	e.Expect(o.Reason).To(Equal(object.ReasonObjectExists))
	e.Expect(o.Message).To(And(ContainSubstring("adoptionPolicy"), Not(MatchRegexp("(?i)delete"))))
	e.install(want)
	e.Expect(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group).GetLabels()).
		To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(e.get(group+"/v1", "Widget", ns, "theirs")).NotTo(BeNil())
}

// TestCRDsOfTheCRDsDirectoryAreUpdatedAfterAReinstallation, as they are by an upgrade.
func TestCRDsOfTheCRDsDirectoryAreUpdatedAfterAReinstallation(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", crds: crd(group), manifest: configMap("x", "a")})
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	newer := strings.Replace(crd(group), "singular: widget,", "singular: widget, shortNames: [wi],", 1)
	e.install(e.want(ns, chart{version: "2", crds: newer, manifest: configMap("x", "a")}))
	live := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	short, _, err := unstructured.NestedStringSlice(live.Object, "spec", "names", "shortNames")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(short).To(Equal([]string{"wi"}))
}

// TestNobodyIsToldToDeleteWhatHoldsData: a claim that can't be changed.
func TestNobodyIsToldToDeleteWhatHoldsData(t *testing.T) {
	e, ns := alone(t)
	claim := func(class string) string {
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: " + class +
			", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	want := e.want(ns, chart{version: "1", manifest: claim("one")})
	e.ensure(want)
	o := e.settle(e.want(ns, chart{version: "2", manifest: claim("two")}))
	e.Expect(o.Reason).To(BeElementOf(object.ReasonImmutableField, object.ReasonObjectRejected), o.Message)
	e.Expect(o.Message).NotTo(MatchRegexp("(?i)delete the object"))

	o = e.settle(e.wantNamed("other", ns, chart{version: "1", manifest: claim("one")}))
	e.Expect(o.Reason).To(Equal(object.ReasonOwnedByOther), o.Message)
}
