// SPDX-License-Identifier: Apache-2.0

package unmanaged_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/unmanaged"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

var server *apiserver.Server

func TestMain(m *testing.M) { suite.RunOnServer(m, "unmanaged", &server, "providerinstances") }

// TestCounter counts with no more rights than the shared deployment has.
func TestCounter(t *testing.T) {
	group := []string{addonsv1.GroupVersion.Group}
	config := server.Allow(t, "webhooks",
		rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{"providerinstances"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: group, Resources: []string{"providerinstances/status"}, Verbs: []string{"patch"}})
	c, err := client.New(config, client.Options{Scheme: apiserver.Scheme()})
	must.Succeed(t, err)
	counter := &unmanaged.Counter{Client: c, APIReader: c, Clock: clock.RealClock{}}

	pi := holder("blue", "default")
	pi.Namespace, pi.Name, pi.Spec.Version, pi.Spec.APIVersions, pi.Spec.ExpirySeconds = "default", "blue", "v1", []string{"v1beta1"}, 40
	status := pi.Status
	must.Succeed(t, server.Create(t.Context(), &pi))
	pi.Status = status
	must.Succeed(t, server.Status().Update(t.Context(), &pi))
	expect := func(want int32) {
		t.Helper()
		must.Succeed(t, counter.Count(t.Context()))
		must.Succeed(t, server.Get(t.Context(), client.ObjectKeyFromObject(&pi), &pi))
		if pi.Status.UnmanagedClusters != want || pi.Status.Grant == nil {
			t.Errorf("the status is %+v, not with %d Clusters", pi.Status, want)
		}
	}
	expect(0)
	nobodys := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nobodys"}, Spec: clusterv1.ClusterSpec{
		ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "ControlPlane", Name: "nobodys"},
	}}
	must.Succeed(t, server.Create(t.Context(), nobodys))
	expect(1)
	version := pi.ResourceVersion
	expect(1)
	if pi.ResourceVersion != version {
		t.Error("an equal count is written again")
	}
	nobodys.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
	must.Succeed(t, server.Update(t.Context(), nobodys))
	expect(0)
}
