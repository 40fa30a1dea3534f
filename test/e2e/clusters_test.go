// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// makeCluster makes a Cluster whose control plane is up, with a kubeconfig
// Secret that leads to the server. The manager's requests to it have a user of
// their own: see clusterUser.
func (tn *tenant) makeCluster(name string, s *server, labels map[string]string, more ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	tn.t.Helper()
	tn.writeKubeconfig(name, tn.userOn(s, name).Kubeconfig)
	return tn.makeClusterObject(name, labels, more...)
}

// newProd returns a tenant whose manager runs, with a Cluster prod, which has the label env=prod, on the workload
// server of this number.
func newProd(t *testing.T, number int) (*tenant, *server) {
	t.Helper()
	tn, s := newTenant(t), workloadServer(t, number)
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.startManager()
	return tn, s
}

// makeClusterObject makes the Cluster alone.
func (tn *tenant) makeClusterObject(name string, labels map[string]string, more ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	tn.t.Helper()
	c := newCluster(tn.namespace, name, labels)
	for _, m := range more {
		m(c)
	}
	tn.create(c)
	tn.setInitialized(c, true)
	return c
}

func newCluster(namespace, name string, labels map[string]string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name, c.Labels = namespace, name, labels
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	return c
}

// setInitialized says whether the control plane takes requests.
func (tn *tenant) setInitialized(c *clusterv1.Cluster, is bool) {
	tn.t.Helper()
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(is)
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	must.Succeed(tn.t, world.hub.Status().Update(tn.t.Context(), c))
}

// userOn makes the user that a Cluster's kubeconfig has on a server.
func (tn *tenant) userOn(s *server, cluster string) *controlplane.User {
	tn.t.Helper()
	user, err := s.AddUser(tn.clusterUser(cluster), "system:masters")
	must.Succeed(tn.t, err)
	return user
}

// clusterUser is who the manager is on the Cluster of this name.
func (tn *tenant) clusterUser(cluster string) string {
	return "chandler:" + tn.namespace + ":" + cluster
}

// writeKubeconfig makes or changes the kubeconfig Secret of a Cluster.
func (tn *tenant) writeKubeconfig(cluster string, kubeconfig []byte) {
	tn.t.Helper()
	secret := &corev1.Secret{ObjectMeta: tn.named(cluster + "-kubeconfig"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: cluster}
	if err := world.hub.Create(tn.t.Context(), secret); err == nil {
		return
	}
	change(tn, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"value": kubeconfig} })
}

// clusterAddon names the ClusterAddon of a Cluster.
func (tn *tenant) clusterAddon(cluster string) *addonsv1.ClusterAddon {
	ca := &addonsv1.ClusterAddon{}
	ca.Namespace, ca.Name = tn.namespace, cluster
	return ca
}

// pauseCluster pauses a Cluster, or ends that.
func (tn *tenant) pauseCluster(name string, is bool) {
	tn.t.Helper()
	change(tn, newCluster(tn.namespace, name, nil), func(c *clusterv1.Cluster) { c.Spec.Paused = &is })
}

// poke makes the manager reconcile a ClusterAddon though nothing changed.
func (tn *tenant) poke(cluster, value string) {
	tn.t.Helper()
	change(tn, tn.clusterAddon(cluster), func(ca *addonsv1.ClusterAddon) {
		if ca.Annotations == nil {
			ca.Annotations = map[string]string{}
		}
		ca.Annotations["e2e.chandler.test/poked"] = value
	})
}

// labels makes a map from "key=value" pairs.
func labels(pairs ...string) map[string]string {
	m := map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		m[key] = value
	}
	return m
}
