// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

// clusterName is that of each team's Cluster, and of its ClusterAddon.
const clusterName = "prod"

// charts is the artifact root of all managers.
const charts = "testdata/charts"

// team is a test's share of the fleet: a namespace, on both management clusters and on the workload cluster.
type team struct {
	fleet

	t         *testing.T
	namespace string
}

func newTeam(t *testing.T) *team {
	t.Helper()
	return &team{fleet: theFleet(t), t: t, namespace: "team-" + utilrand.String(5)}
}

// in is the team within a subtest, which then fails instead of the whole test.
func (tm *team) in(t *testing.T) *team {
	sub := *tm
	sub.t = t
	return &sub
}

// user is who managers are on the workload cluster.
func (tm *team) user() string { return "chandler:" + tm.namespace }

// run starts a manager for the team on a management cluster, as the release's ServiceAccount.
func (tm *team) run(hub *server, flags ...string) *manager.Process {
	tm.t.Helper()
	kubeconfig, err := manager.ServiceAccountKubeconfig(tm.t.Context(), hub.ControlPlane, systemNamespace, "chandler-manager")
	must.Succeed(tm.t, err)
	root, err := filepath.Abs(charts)
	must.Succeed(tm.t, err)
	return manager.Start(tm.t, manager.Options{
		Binary:     world.managers[tm.version(hub)],
		Kubeconfig: kubeconfig,
		Args: append([]string{
			"--namespace=" + tm.namespace, "--artifact-root=" + root, "--leader-elect", "--leader-elect-namespace=" + systemNamespace,
		}, flags...),
	})
}

// makeCluster makes a Cluster on the workload server, as Cluster API and an infrastructure provider would.
func (tm *team) makeCluster(hub *server) {
	tm.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: tm.named(clusterName)}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: clusterName,
	}
	tm.create(hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tm.namespace}})
	tm.create(hub, cluster)
	owner := []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: clusterName, UID: cluster.UID}}
	infrastructure := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"region": "eu-1"}}}
	infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	infrastructure.SetKind("TestCluster")
	infrastructure.SetNamespace(tm.namespace)
	infrastructure.SetName(clusterName)
	infrastructure.SetOwnerReferences(owner)
	tm.create(hub, infrastructure)
	user, err := tm.workload.AddUser(tm.user(), "system:masters")
	must.Succeed(tm.t, err)
	kubeconfig := &corev1.Secret{ObjectMeta: tm.named(clusterName + "-kubeconfig"), Type: clusterv1.ClusterSecretType}
	kubeconfig.Labels = map[string]string{clusterv1.ClusterNameLabel: clusterName}
	kubeconfig.Data = map[string][]byte{"value": user.Kubeconfig}
	tm.create(hub, kubeconfig)
	tm.reportProvisioned(hub)
}

// reportProvisioned does what Cluster API does with a Cluster that isn't paused: it finds that all is there.
func (tm *team) reportProvisioned(hub *server) {
	tm.t.Helper()
	cluster := &clusterv1.Cluster{}
	must.Succeed(tm.t, hub.Get(tm.t.Context(), tm.key(clusterName), cluster))
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	conditions.Set(cluster, metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized"})
	must.Succeed(tm.t, hub.Status().Update(tm.t.Context(), cluster))
}

// releases are the status of each release in the workload cluster, by name and revision.
func (tm *team) releases() map[string]string {
	tm.t.Helper()
	secrets := &corev1.SecretList{}
	must.Succeed(tm.t, tm.workload.List(tm.t.Context(), secrets, client.InNamespace(tm.namespace), client.MatchingLabels{"owner": "helm"}))
	found := map[string]string{}
	for _, s := range secrets.Items {
		found[s.Labels["name"]+"/"+s.Labels["version"]] = s.Labels["status"]
	}
	return found
}

func (tm *team) create(hub *server, obj client.Object) {
	tm.t.Helper()
	if err := hub.Create(tm.t.Context(), obj); err != nil {
		tm.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
	}
}

func (tm *team) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: tm.namespace, Name: name}
}

func (tm *team) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: tm.namespace, Name: name}
}
