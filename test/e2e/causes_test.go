// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// makeClusterWithoutRights makes a Cluster whose kubeconfig's user may ask for no object but by the rules. It returns the
// user's role.
func (tn *tenant) makeClusterWithoutRights(name string, s *server, labels map[string]string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	tn.t.Helper()
	known, err := s.AddUser(tn.clusterUser(name))
	must(tn.t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "limited-" + tn.namespace}}
	s.grant(tn.t, "", role.Name, user(tn.clusterUser(name)), append(rules, rbacv1.PolicyRule{NonResourceURLs: everyVerb, Verbs: everyVerb})...)
	tn.writeKubeconfig(name, known.Kubeconfig)
	tn.makeClusterObject(name, labels)
	return role
}

// TestStackNamesCauses has a stack on four clusters. All lack a Secret, one is paused, and one doesn't let its records
// be read. The stack alone says so, and nothing of it once it is over.
func TestStackNamesCauses(t *testing.T) {
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

// TestRecordThatMayNotBeWritten has a kubeconfig whose user may read Secrets, and may not
// make any. Once it may, the add-on is installed.
func TestRecordThatMayNotBeWritten(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	role := tn.makeClusterWithoutRights("prod", s, nil,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: everyVerb})
	tn.startManager()
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.awaitCluster("prod", "what may not be done is told",
		phase("settings", addonsv1.AddonFailed, "Forbidden", "Secret "+tn.namespace+"/sh.helm.release.v1.settings.v1"),
		phase("settings", addonsv1.AddonFailed, "Forbidden", "cannot create"))
	changeOn(t, s, role, func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = everyVerb })
	tn.awaitReady("platform", "it is tried again")
}
