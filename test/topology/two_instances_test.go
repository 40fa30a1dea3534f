// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/topology"
)

// TestTwoInstancesOneServer has two instances, one of which manages labeled Clusters alone. One server answers for both,
// with the rights of the shared deployment.
func TestTwoInstancesOneServer(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	all := newUnaskedTenant(t, "all", "--run=controllers")
	some := newUnaskedTenant(t, "some", "--run=controllers", "--watch-filter=mine")
	server, user := all.serve()
	all.register(server, all.namespace, some.namespace)
	mine := map[string]string{clusterv1.WatchLabel: "mine"}
	stack := func(tn *tenant, text string) *addonsv1.AddonStack {
		s := tn.stack(tn.addon("cni", addonsv1.UpgradeBeforeControlPlane, text))
		s.Labels = mine
		return s
	}
	const name, nobodys = "c", "nobodys"
	for _, tn := range []*tenant{all, some} {
		c := topology.NewCluster(key(tn.at(name)), localClass, v34, 0)
		if tn == some {
			c.Labels = mine
			createCluster(t, tn.at(nobodys), localClass, v34, 0)
		}
		g.Expect(world.Create(t.Context(), c)).To(Succeed())
		tn.set(stack(tn, "first"))
		tn.awaitFirst(name)
		tn.set(stack(tn, "second"))
		setVersion(t, tn.at(name), v35)
	}
	awaitCondition(t, some.at(nobodys), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	setVersion(t, some.at(nobodys), v35)
	awaitState(t, some.at(nobodys), state{controlPlane: v35, runs: v35})
	for _, tn := range []*tenant{all, some} {
		awaitCondition(t, tn.at(name), clusterv1.ClusterTopologyReconciledCondition, false, "ClusterAddon "+name)
		expectState(t, tn.at(name), state{controlPlane: v34, runs: v34})
	}
	some.ready(name, "cni", "second")
	awaitState(t, some.at(name), state{controlPlane: v35, runs: v35})
	expectState(t, all.at(name), state{controlPlane: v34, runs: v34})
	all.ready(name, "cni", "second")
	awaitState(t, all.at(name), state{controlPlane: v35, runs: v35})

	for _, e := range world.Audit.Beginning().Requests(t, audit.By(user)) {
		g.Expect(audit.Forbidden(&e)).To(BeFalse(), "it asks for nothing that it may not have: %s %s", e.Verb, e.RequestURI)
		if e.ObjectRef == nil {
			continue
		}
		g.Expect(e.ObjectRef.Resource).NotTo(Equal("secrets"), e.RequestURI)
		if audit.Write(&e) {
			g.Expect(e.ObjectRef.Resource).NotTo(BeElementOf("clusters", "clusteraddons"), e.RequestURI)
		}
	}
}

// serve starts a server of webhooks and hooks with the rights of the shared deployment, and returns its address and user.
func (tn *tenant) serve() (address, user string) {
	tn.Helper()
	t, g := tn.T, NewWithT(tn.T)
	address, flags := servingFlags(t)
	user = tn.namespace + "-webhooks"
	serving, err := world.AddUser(user)
	g.Expect(err).NotTo(HaveOccurred())

	data, err := os.ReadFile(filepath.Join(world.root, "config/rbac/webhooks/role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	g.Expect(yaml.UnmarshalStrict(data, role)).To(Succeed())
	g.Expect(world.Create(t.Context(), role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.Name = role.Name
	g.Expect(world.Create(t.Context(), binding)).To(Succeed())
	manager.Start(t, manager.Options{
		Name: user, Binary: world.chandler, Kubeconfig: serving.Kubeconfig, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
		Args: append([]string{"--run=webhooks"}, flags...),
	})
	return address, user
}
