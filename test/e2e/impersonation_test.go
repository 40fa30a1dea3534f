// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
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
		phase("made", addonsv1.AddonFailed, "Forbidden", "Making namespace"))
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
