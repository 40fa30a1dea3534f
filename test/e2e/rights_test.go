// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
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
	must(t, s.Create(t.Context(), role))
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
	must(t, s.Create(t.Context(), binding))
	return binding
}

// shippedRole reads the first role of a file of config/rbac.
func shippedRole(t *testing.T, file string) *rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(world.root, "config/rbac", file))
	must(t, err)
	role := &rbacv1.ClusterRole{}
	must(t, yaml.UnmarshalStrict(bytes.SplitN(data, []byte("\n---\n"), 2)[0], role))
	return role
}
