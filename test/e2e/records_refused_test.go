// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestRecordThatMayNotBeWritten has a kubeconfig whose user may read Secrets, and may not
// make any. Once it may, the add-on is installed.
func TestRecordThatMayNotBeWritten(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	user, err := s.AddUser(tn.clusterUser("prod"))
	must(t, err)
	all := []string{"*"}
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: all},
		{NonResourceURLs: all, Verbs: all},
	}}
	role.Name = "limited-" + tn.namespace
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tn.clusterUser("prod")}},
	}
	binding.Name = role.Name
	must(t, s.Create(t.Context(), role))
	must(t, s.Create(t.Context(), binding))
	tn.writeKubeconfig("prod", user.Kubeconfig)
	tn.makeClusterObject("prod", nil)
	tn.startManager()
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.awaitCluster("prod", "what may not be done is told",
		phase("settings", addonsv1.AddonFailed, "Forbidden", "Secret "+tn.namespace+"/sh.helm.release.v1.settings.v1"),
		phase("settings", addonsv1.AddonFailed, "Forbidden", "cannot create"))
	changeOn(t, s, role, func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = all })
	tn.awaitReady("platform", "it is tried again")
}
