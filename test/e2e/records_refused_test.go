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
