// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/long"
)

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
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue())
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
	other := e.want(ns, c) // many charts bring the same CRDs
	other.Name = "other"
	c.manifest = widget(group, "two")
	other = e.want(ns, c)
	other.Name = "other"
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
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(And(ContainSubstring(ns+"-used"), ContainSubstring("theirs")))
	e.Expect(e.get("v1", "Namespace", "", ns+"-empty")).To(BeNil())
	e.Expect(e.get("v1", "Namespace", "", ns+"-used")).NotTo(BeNil())
	e.Expect(o).To(HaveField("Phase", BeEmpty()))
	_ = deliver.ReasonReady
}
