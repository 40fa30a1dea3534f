// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestNamespaceOfSomebodyIsShared: an add-on sets its fields on a namespace that was there, and
// neither takes it over nor deletes it.
func TestNamespaceOfSomebodyIsShared(t *testing.T) {
	e, ns := alone(t)
	theirs := ns + "-theirs"
	e.apply("kubectl", namespace(theirs, "team: blue"))
	manifest := namespace(theirs, "team: red", "level: privileged")
	want := e.want(ns, chart{version: "1", manifest: manifest + configMap("x", "a")})
	labels := And(HaveKeyWithValue("team", "blue"), HaveKeyWithValue("level", "privileged"), Not(HaveKey(addonsv1.AddonLabel)))
	for version, text := range map[string]string{"1": "a", "2": "b"} {
		e.install(e.want(ns, chart{version: version, manifest: manifest + configMap("x", text)}))
		e.Expect(e.get("v1", "Namespace", "", theirs).GetLabels()).To(labels)
	}
	// Another add-on shares it, too.
	other := e.wantNamed("other", ns, chart{version: "1", manifest: namespace(theirs, "other: yes-please")})
	e.install(other)
	e.Expect(e.remove(other.Release).Gone).To(BeTrue())

	e.install(e.want(ns, chart{version: "3", manifest: configMap("x", "c")}))
	e.Expect(e.get("v1", "Namespace", "", theirs)).NotTo(BeNil(), "it isn't pruned")
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	left := e.get("v1", "Namespace", "", theirs)
	e.Expect(left).NotTo(BeNil())
	e.Expect(left.GetDeletionTimestamp()).To(BeNil())
}

// TestNamespaceOfAnotherAddonIsShared: removal of who shares it runs its hooks, as nothing
// of it lives on in the other.
func TestNamespaceOfAnotherAddonIsShared(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	both := ns + "-both"
	owner := e.wantNamed("owner", ns, chart{version: "1", manifest: namespace(both)})
	e.install(owner)
	guest := e.wantNamed("guest", ns, chart{version: "1", manifest: namespace(both, "guest: is-here") + configMap("x", "a"),
		hooks: []job.Hook{hook("bye", 0, jobText("bye", false), []string{"pre-delete"})}})
	e.install(guest)
	live := e.get("v1", "Namespace", "", both)
	e.Expect(live.GetLabels()).To(And(HaveKeyWithValue("guest", "is-here"), HaveKeyWithValue(addonsv1.AddonLabel, "owner")))
	keys, known, err := e.d.Holds(e.ctx, e.target, guest.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(known).To(BeTrue())
	e.Expect(keys).To(Equal([]deliver.ObjectKey{{Kind: "ConfigMap", Namespace: ns, Name: "x"}}))

	e.Expect(e.remove(guest.Release).Gone).To(BeTrue())
	e.Expect(e.get("batch/v1", "Job", ns, "bye")).NotTo(BeNil(), "its hook was run")
	e.Expect(e.remove(owner.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "Namespace", "", both)).To(BeNil())
}

// TestNamespaceOfKubernetesIsNeverOwned, whatever the adoption policy.
func TestNamespaceOfKubernetesIsNeverOwned(t *testing.T) {
	for _, policy := range []addonsv1.AdoptionPolicy{addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdoptIfEqual, addonsv1.AdoptionPolicyAdopt} {
		t.Run(string(policy), func(t *testing.T) {
			e, ns := alone(t)
			want := e.want(ns, chart{version: "1", manifest: namespace("kube-public", ns+": here") + namespace(ns, "mine: also")})
			want.Adoption = policy
			e.install(want)
			for _, name := range []string{"kube-public", ns} {
				e.Expect(e.get("v1", "Namespace", "", name).GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel), name)
			}
			e.Expect(e.get("v1", "Namespace", "", "kube-public").GetLabels()).To(HaveKeyWithValue(ns, "here"))
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "Namespace", "", ns)).NotTo(BeNil())
		})
	}
}

// TestNamespaceIsAdoptedIfAsked owns a namespace that was there.
func TestNamespaceIsAdoptedIfAsked(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	theirs := ns + "-theirs"
	e.Expect(e.target.Client.Create(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}})).To(Succeed())
	want := e.want(ns, chart{version: "1", manifest: namespace(theirs)})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	e.Expect(e.get("v1", "Namespace", "", theirs).GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "Namespace", "", theirs)).To(BeNil())
}

// TestSharedNamespaceIsNeverDeleted has somebody copy the add-on's labels to a namespace that it shares: it stays all the same.
func TestSharedNamespaceIsNeverDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns, theirs := e.namespace(), e.namespace()
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + theirs + ", labels: {team: web}}\n"})
	e.install(want)
	e.edit("somebody", e.get("v1", "Namespace", "", theirs), fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:"demo"}}}`, addonsv1.AddonNamespaceLabel, ns, addonsv1.AddonLabel))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	live := e.get("v1", "Namespace", "", theirs)
	e.Expect(live).NotTo(BeNil())
	e.Expect(live.GetDeletionTimestamp()).To(BeNil())
}
