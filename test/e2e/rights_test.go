// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// everyVerb is all that may be done.
var everyVerb = []string{"*"}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func serviceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// grant makes a role, and gives it to somebody: in a namespace, or everywhere if that is "". The binding, which it
// returns, has the same name.
func (s *server) grant(t *testing.T, namespace, name string, who rbacv1.Subject, rules ...rbacv1.PolicyRule) client.Object {
	t.Helper()
	var role client.Object = &rbacv1.ClusterRole{Rules: rules}
	kind := "ClusterRole"
	if namespace != "" {
		role, kind = &rbacv1.Role{Rules: rules}, "Role"
	}
	role.SetNamespace(namespace)
	role.SetName(name)
	must.Succeed(t, s.Create(t.Context(), role))
	return s.bind(t, namespace, name, who, kind, name)
}

// bind gives somebody a role that exists.
func (s *server) bind(t *testing.T, namespace, name string, who rbacv1.Subject, kind, role string) client.Object {
	t.Helper()
	ref, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, []rbacv1.Subject{who}
	var binding client.Object = &rbacv1.ClusterRoleBinding{RoleRef: ref, Subjects: subjects}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{RoleRef: ref, Subjects: subjects}
	}
	binding.SetNamespace(namespace)
	binding.SetName(name)
	must.Succeed(t, s.Create(t.Context(), binding))
	return binding
}

// shippedRole reads the first role of a file of config/rbac.
func shippedRole(t *testing.T, file string) *rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/rbac", file))
	must.Succeed(t, err)
	role := &rbacv1.ClusterRole{}
	must.Succeed(t, yaml.UnmarshalStrict(bytes.SplitN(data, []byte("\n---\n"), 2)[0], role))
	return role
}

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
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), everywhere))
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), inNamespaces))
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
