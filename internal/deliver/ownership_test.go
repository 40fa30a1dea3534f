// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// theirConfigMap is YAML of a ConfigMap of somebody else.
func theirConfigMap(ns, name, value string, labels ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {a: b", name, ns)
	for _, l := range labels {
		text += ", " + l
	}
	return text + fmt.Sprintf("}}\ndata: {key: %s}\n", value)
}

func (e *env) delete(o *unstructured.Unstructured) {
	e.t.Helper()
	e.Expect(o).NotTo(BeNil())
	e.Expect(e.target.Client.Delete(e.ctx, o)).To(Succeed())
}

// TestObjectMadeAnewByAnotherAddonStaysItsOwn deletes an object of one add-on by hand.
// Another add-on makes one of that name, and keeps it through upgrade and removal of the first.
func TestObjectMadeAnewByAnotherAddonStaysItsOwn(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	first := e.wantNamed("first", ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "1")})
	e.install(first)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	second := e.wantNamed("second", ns, chart{version: "1", manifest: configMap("x", "b")})
	e.install(second)

	o := e.settle(e.wantNamed("first", ns, chart{version: "2", manifest: configMap("x", "c") + configMap("mine", "2")}))
	e.Expect(o.Reason).To(Equal(deliver.ReasonOwnedByOther), o.Message)
	e.Expect(o.Message).To(ContainSubstring(ns + "/second"))
	e.Expect(e.remove(first.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
	x := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(x).NotTo(BeNil())
	e.Expect(x.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "second"))
	e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "b"}))
}

// TestObjectMadeAnewBySomebodyIsJudgedByTheAdoptionPolicy has no other add-on in it.
func TestObjectMadeAnewBySomebodyIsJudgedByTheAdoptionPolicy(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	e.install(e.want(ns, chart{version: "1", manifest: configMap("x", "a")}))
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.apply("kubectl", theirConfigMap(ns, "x", "theirs"))

	next := e.want(ns, chart{version: "2", manifest: configMap("x", "b")})
	o := e.settle(next)
	e.Expect(o.Reason).To(Equal(deliver.ReasonObjectExists), o.Message)
	e.Expect(e.get("v1", "ConfigMap", ns, "x").Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
	next.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(next)
	e.Expect(e.get("v1", "ConfigMap", ns, "x").Object["data"]).To(Equal(map[string]any{"key": "b"}))
}

// TestObjectThatIsGoneIsMadeAnew by the next upgrade.
func TestObjectThatIsGoneIsMadeAnew(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	e.install(e.want(ns, chart{version: "1", manifest: configMap("x", "a")}))
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.install(e.want(ns, chart{version: "2", manifest: configMap("x", "b")}))
	e.Expect(e.get("v1", "ConfigMap", ns, "x").Object["data"]).To(Equal(map[string]any{"key": "b"}))
}

// TestRepairLeavesWhatSomebodyMadeAnew alone, and says so.
func TestRepairLeavesWhatSomebodyMadeAnew(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	e.install(want)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.apply("kubectl", theirConfigMap(ns, "x", "theirs"))
	o, err := e.d.Repair(e.ctx, e.target, want.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonObjectExists), o.Message)
	e.Expect(e.get("v1", "ConfigMap", ns, "x").Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
}

// TestRemovalLeavesWhatSomebodyMadeAnew although the copy has the add-on's labels, as one
// of a backup does.
func TestRemovalLeavesWhatSomebodyMadeAnew(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace()
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "a")})
	e.install(want)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.apply("kubectl", theirConfigMap(ns, "x", "theirs", addonsv1.AddonLabel+": demo", addonsv1.AddonNamespaceLabel+": "+ns))
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(ContainSubstring("ConfigMap " + ns + "/x"))
	e.Expect(e.get("v1", "ConfigMap", ns, "x")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
}
