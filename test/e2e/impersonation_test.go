// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestImpersonation has an instance deliver with the rights of a ServiceAccount that may write
// ConfigMaps and Secrets in one namespace of the workload cluster, and nothing else.
func TestImpersonation(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s, g := newTenant(t), workloadServer(t, 0), NewWithT(t)
	s.createNamespace(t, tn.namespace)
	binding := allowDeployer(t, s, tn.namespace)
	settings := &corev1.ConfigMap{ObjectMeta: tn.named("settings")}
	role := "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: '{{ .Release.Namespace }}-{{ .Release.Name }}'}\n"
	greedy := tn.writeChart("greedy", "1.0.0", chart{"templates/all.yaml": configMap("{{ .Release.Name }}", "default") + role})
	tn.makeCluster("prod", s, nil)
	m := s.mark(t)
	tn.startManager("--require-impersonation")
	tn.makeStack("platform", nil, tn.small("settings"))

	tn.awaitCluster("prod", "nobody's rights are named", phase("settings", addonsv1.AddonFailed, "ServiceAccountRequired", "spec.serviceAccountName"))
	tn.quiet(t, map[string]mark{"prod": m}, "nothing is written with the kubeconfig's rights")

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.ServiceAccountName = "deployer" })
	tn.awaitCluster("prod", "it has the rights", ready("settings"), deliveredAs("settings", "deployer"))

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons = append(spec.Addons, tn.addon("greedy", greedy), tn.small("elsewhere", inNamespace("kube-system")),
			tn.small("made", inNamespace(tn.namespace+"-made")))
	})
	account := "system:serviceaccount:" + tn.namespace + ":deployer"
	tn.awaitCluster("prod", "what is beyond its rights is refused", phase("settings", addonsv1.AddonReady, "", ""),
		phase("greedy", addonsv1.AddonFailed, "Forbidden", account),
		phase("elsewhere", addonsv1.AddonFailed, "Forbidden", "create Secrets in namespace kube-system"),
		phase("made", addonsv1.AddonFailed, "Forbidden", "Namespace "+tn.namespace+"-made"))
	g.Expect(s.release(t, "kube-system", "elsewhere")).To(Equal(releaseState{}), "a namespace gets no record that it may not write")

	g.Expect(s.Delete(t.Context(), settings.DeepCopy())).To(Succeed())
	await(t, s, settings.DeepCopy(), patience, "it is repaired", func(*corev1.ConfigMap) error { return nil })

	// The stack goes while nobody looks, and so do the rights.
	tn.stopManager()
	tn.remove(tn.newStack("platform", nil))
	g.Expect(s.Delete(t.Context(), binding)).To(Succeed())
	tn.startManager("--require-impersonation")
	tn.awaitCluster("prod", "without rights nothing is removed", phase("settings", addonsv1.AddonFailed, "PruneFailed", account))
	g.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(settings), settings.DeepCopy())).To(Succeed())
	binding.SetResourceVersion("")
	g.Expect(s.Create(t.Context(), binding)).To(Succeed())
	tn.awaitCluster("prod", "with them all of it is", func(ca *addonsv1.ClusterAddon) error {
		if len(ca.Status.Addons) > 0 {
			return fmt.Errorf("%+v", ca.Status.Addons)
		}
		return nil
	})

	g.Expect(client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(settings), settings))).To(Succeed())
	g.Expect(settings.UID).To(BeEmpty(), "it is gone")

	of := map[string]int{}
	for _, e := range m.requests(t, tn.clusterUser("prod")) {
		switch {
		case !audit.Write(&e):
		case e.ImpersonatedUser != nil:
			of[e.ImpersonatedUser.Username]++
		case e.ObjectRef.Resource != "secrets" || !strings.HasPrefix(e.ObjectRef.Name, "sh.helm.release.v1."):
			t.Errorf("written with the kubeconfig's rights: %s %s", e.Verb, e.RequestURI)
		}
	}
	g.Expect(of).To(HaveLen(1))
	g.Expect(of).To(HaveKeyWithValue(account, BeNumerically(">", 3)))
}

// allowDeployer gives the ServiceAccount deployer its rights in its own namespace.
func allowDeployer(t *testing.T, s *server, namespace string) client.Object {
	t.Helper()
	return s.grant(t, namespace, "deployer", serviceAccount(namespace, "deployer"), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "create", "patch", "delete"},
	})
}

// deliveredAs expects an add-on that a ServiceAccount delivers.
func deliveredAs(addon, serviceAccount string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if got := statusOf(ca, addon).ServiceAccountName; got != serviceAccount {
			return fmt.Errorf("add-on %s is delivered by ServiceAccount %q", addon, got)
		}
		return nil
	}
}

// makeClusterWithoutRights makes a Cluster whose kubeconfig's user may ask for no object. It returns the user's role.
func (tn *tenant) makeClusterWithoutRights(name string, s *server, labels map[string]string) *rbacv1.ClusterRole {
	tn.t.Helper()
	known, err := s.AddUser(tn.clusterUser(name))
	must.Succeed(tn.t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "limited-" + tn.namespace}}
	s.grant(tn.t, "", role.Name, user(tn.clusterUser(name)), rbacv1.PolicyRule{NonResourceURLs: everyVerb, Verbs: everyVerb})
	tn.writeKubeconfig(name, known.Kubeconfig)
	tn.makeClusterObject(name, labels)
	return role
}

// TestStackNamesCauses has a stack on four clusters. All lack a Secret, one is paused, and one doesn't let its records
// be read. The stack alone says so, and nothing of it once it is over.
func TestStackNamesCauses(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	tn.makeCluster("bergen", workloadServer(t, 0), nil)
	tn.makeCluster("genoa", workloadServer(t, 1), nil)
	tn.makeCluster("osaka", workloadServer(t, 0), nil, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	s := workloadServer(t, 2)
	role := tn.makeClusterWithoutRights("porto", s, nil)

	tn.startManager()
	tn.makeStack("platform", nil,
		tn.small("base", valuesFromSecrets("late")),
		tn.small("above", after("base")))
	for _, cause := range []string{
		"0 of 4 clusters are ready; 2 can't be worked on now. ",
		"bergen, genoa: add-on base: ValuesNotFound: addons[base].valuesFrom[0]: Secret " + tn.namespace + "/late doesn't exist",
		"osaka: Paused", "porto: RecordsUnreadable: ", "Secrets",
	} {
		tn.awaitStack("platform", "it names the causes", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersProgressingReason, cause)
	}
	tn.Expect(tn.warningsOf("ClusterAddon", addonsv1.RecordsUnreadableReason)).To(Equal(1))
	waits := tn.awaitCluster("bergen", "it waits", phase("base", addonsv1.AddonPending, "ValuesNotFound", ""))
	since := statusOf(waits, "base").Since
	tn.Expect(since.IsZero()).To(BeFalse())
	tn.Expect(waits.Status.Stacks).To(HaveLen(1))
	tn.Expect(waits.Status.Stacks[0].State).To(Equal(addonsv1.StackPending))
	tn.restartAndLookAt("bergen")
	again := tn.awaitCluster("bergen", "it waits still", phase("base", addonsv1.AddonPending, "ValuesNotFound", ""))
	tn.Expect(statusOf(again, "base").Since).To(Equal(since), "a restart changes nothing")
	tn.Expect(again.Status.Stacks).To(Equal(waits.Status.Stacks))

	tn.create(tn.secret("late", map[string]string{"values.yaml": "text: here\n"}))
	changeOn(t, s, role, func(r *rbacv1.ClusterRole) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: everyVerb, Resources: everyVerb, Verbs: everyVerb})
	})
	tn.awaitStack("platform", "all but a pause is over", addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.ClustersProgressingReason,
		"3 of 4 clusters are ready; 1 can't be worked on now. osaka: Paused")
	is := tn.awaitCluster("bergen", "it is installed", ready("base", "above"))
	tn.Expect(is.Status.Stacks[0].State).To(Equal(addonsv1.StackReady))
}
