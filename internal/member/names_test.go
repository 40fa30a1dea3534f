// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// The fleet's name and the ClusterAddon's lead to each other, for each kind.
func TestNames(t *testing.T) {
	names := member.Names{Namespace: "system"}
	for name, want := range map[multicluster.ClusterName]struct {
		key types.NamespacedName
		ref *addonsv1.ClusterReference
	}{
		"team/prod":          {key: types.NamespacedName{Namespace: "team", Name: "prod"}},
		"team/prod.secret":   {key: types.NamespacedName{Namespace: "team", Name: "prod.secret"}},
		"secrets#team/prod":  {types.NamespacedName{Namespace: "team", Name: "prod.secret"}, &addonsv1.ClusterReference{Kind: "Secret", Name: "prod"}},
		"profiles#team/prod": {types.NamespacedName{Namespace: "team", Name: "prod.clusterprofile"}, &addonsv1.ClusterReference{APIGroup: "multicluster.x-k8s.io", Kind: "ClusterProfile", Name: "prod"}},
		"files#kind-one":     {types.NamespacedName{Namespace: "system", Name: "kind-one.kubeconfigcontext"}, &addonsv1.ClusterReference{Kind: "KubeconfigContext", Name: "kind-one"}},
		"self#local":         {types.NamespacedName{Namespace: "system", Name: "local.managementcluster"}, &addonsv1.ClusterReference{Kind: "ManagementCluster", Name: "local"}},
	} {
		key, ok := names.ClusterAddon(name)
		if !ok || key != want.key {
			t.Errorf("%s: %s, %t", name, key, ok)
		}
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		ca.Spec.ClusterName, ca.Spec.ClusterRef = key.Name, want.ref
		if want.ref != nil {
			ca.Spec.ClusterName = want.ref.Name
		}
		if back := names.Fleet(ca); back != name {
			t.Errorf("%s: back to %s", name, back)
		}
	}
}

// What no object can be named is left out, and harms nobody.
func TestNamesThatNoObjectHas(t *testing.T) {
	names := member.Names{Namespace: "system"}
	for _, name := range []multicluster.ClusterName{"", "prod", "files#", "files#admin@kind", "files#A", "files#a/b", "unknown#a/b", "secrets#prod"} {
		if key, ok := names.ClusterAddon(name); ok {
			t.Errorf("%q: %s", name, key)
		}
	}
	newer := &addonsv1.ClusterAddon{}
	newer.Spec.ClusterRef = &addonsv1.ClusterReference{Kind: "Later", Name: "x"}
	if key, ok := names.ClusterAddon(names.Fleet(newer)); ok {
		t.Errorf("a kind of a newer API is %s", key)
	}
}
