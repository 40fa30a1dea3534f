// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// instance is the tenant with a user of its own for the managers that it starts, so
// that the audit log tells them from the tenant's others. The user's rights are
// those that the tenant's user has now.
func (tn *tenant) instance(name string) *tenant {
	tn.t.Helper()
	sub := *tn
	sub.user = tn.user + ":" + name
	isTenant := func(s rbacv1.Subject) bool { return s.Name == tn.user }
	everywhere := &rbacv1.ClusterRoleBindingList{}
	inNamespaces := &rbacv1.RoleBindingList{}
	must(tn.t, world.hub.List(tn.t.Context(), everywhere))
	must(tn.t, world.hub.List(tn.t.Context(), inNamespaces))
	for _, b := range everywhere.Items {
		if slices.ContainsFunc(b.Subjects, isTenant) {
			world.hub.bind(tn.t, "", b.Name+"-"+name, user(sub.user), b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
	for _, b := range inNamespaces.Items {
		if slices.ContainsFunc(b.Subjects, isTenant) {
			world.hub.bind(tn.t, b.Namespace, b.Name+"-"+name, user(sub.user), b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
	return &sub
}

// stackWithFilter is an AddonStack with a watch label.
func (tn *tenant) stackWithFilter(name, filter string, addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := tn.newStack(name, nil, addons...)
	s.Labels = labels(clusterv1.WatchLabel + "=" + filter)
	return s
}

// refilter changes the watch label of a Cluster.
func (tn *tenant) refilter(cluster, filter string) {
	tn.t.Helper()
	change(tn, newCluster(tn.namespace, cluster, nil), func(c *clusterv1.Cluster) { c.Labels[clusterv1.WatchLabel] = filter })
}

// quiet expects that what happened since the marks wrote nothing to the workload clusters.
func (tn *tenant) quiet(t *testing.T, marks map[string]mark, reason string) {
	t.Helper()
	for cluster, m := range marks {
		if written := writes(m.requests(t, tn.clusterUser(cluster))); len(written) > 0 {
			t.Errorf("%s: Cluster %s got %v", reason, cluster, written)
		}
	}
}
