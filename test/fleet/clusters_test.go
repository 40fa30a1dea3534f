// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// clusterNamed is a Cluster of the hub.
func (h *hub) clusterNamed(name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
}

// cluster makes a Cluster with a finalizer, as Cluster API does.
func (h *hub) cluster(t *testing.T, name string, labels map[string]string) *clusterv1.Cluster {
	t.Helper()
	c := h.clusterNamed(name)
	c.Labels, c.Finalizers = labels, []string{clusterv1.ClusterFinalizer}
	h.create(t, c)
	return c
}

// kubeconfigOf is a Cluster's Secret.
func (h *hub) kubeconfigOf(cluster string, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: cluster + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": data},
	}
}

// kubeconfig writes a Cluster's Secret.
func (h *hub) kubeconfig(t *testing.T, name string, data []byte) {
	t.Helper()
	must.Succeed(t, store(t.Context(), h.Client, h.kubeconfigOf(name, data)))
}

func (h *hub) name(cluster string) multicluster.ClusterName {
	return multicluster.ClusterName(h.namespace + "/" + cluster)
}

// tokens makes a user of the workload cluster, and returns what makes tokens for it.
func (h *hub) tokens(t *testing.T) func() string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "chandler-"}}
	must.Succeed(t, h.workloads.Create(t.Context(), account))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "chandler-"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	must.Succeed(t, h.workloads.Create(t.Context(), binding))
	return func() string { return h.tokenOf(t, account) }
}

// tokenOf makes a token for a user of the workload cluster. It is bound to a Secret of its own, so that it can be revoked
// alone.
func (h *hub) tokenOf(t *testing.T, account *corev1.ServiceAccount) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "token-"}}
	must.Succeed(t, h.workloads.Create(t.Context(), secret))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
	}}
	must.Succeed(t, h.workloads.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// whoAmI returns what the server knows of the token that a connection uses.
func (h *hub) whoAmI(t *testing.T, conn *fleet.Connection) string {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	must.Succeed(t, conn.Client().Create(t.Context(), review))
	return fmt.Sprint(review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"])
}

// awaitOtherToken waits until a connection uses another token than the first, below what runs on it.
func (h *hub) awaitOtherToken(t *testing.T, conn *fleet.Connection, first string) {
	t.Helper()
	took := wait.Until(t, patience, "the token is swapped", func() error {
		if h.whoAmI(t, conn) == first {
			return errors.New("it is the old one")
		}
		return nil
	})
	t.Logf("swapped after %s", took.Round(time.Millisecond))
	if conn.Context().Err() != nil {
		t.Error("disconnected by a new token")
	}
}

func (h *hub) withToken(token string) []byte {
	c := h.workload.Config()
	return fleettest.Kubeconfig(c.Host, c.CAData, &clientcmdapi.AuthInfo{Token: token})
}

func TestClustersOfTheHub(t *testing.T) {
	long.Test(t)
	h := start(t, quick(capi.New(capi.Options{})))
	c := h.cluster(t, "one", nil)
	h.expect(t, h.name("one"), fleet.PhaseWaiting, fleet.ReasonKubeconfigMissing)
	start := time.Now()
	h.kubeconfig(t, "one", h.workload.Kubeconfig())
	conn := h.connected(t, h.name("one"))
	t.Logf("connected %s after the Secret", time.Since(start))

	start = time.Now()
	facts, err := conn.Facts(t.Context())
	if err != nil || !slices.Contains(facts.APIVersions, "apps/v1/Deployment") || !slices.Contains(facts.APIVersions, "v1") || len(facts.Incomplete) > 0 {
		t.Errorf("%d API versions, %v", len(facts.APIVersions), err)
	}
	t.Logf("%s, %d API versions in %s", facts.KubernetesVersion, len(facts.APIVersions), time.Since(start))

	works(t, conn)

	// A Cluster that is being deleted stays connected until it is gone.
	h.delete(t, c)
	time.Sleep(300 * time.Millisecond)
	if conn.Context().Err() != nil {
		t.Fatal("disconnected while the Cluster is being deleted")
	}
	h.patch(t, c, `{"metadata":{"finalizers":null}}`)
	h.gone(t, h.name("one"), conn)
}

// A Cluster that is relabelled out of the watch filter is let go at once, and
// taken up when it comes back.
func TestWatchFilter(t *testing.T) {
	h := start(t, quick(capi.New(capi.Options{WatchFilter: "blue", Cluster: &clusterv1.Cluster{}})))
	c := h.cluster(t, "mine", map[string]string{clusterv1.WatchLabel: "blue"})
	h.cluster(t, "theirs", map[string]string{clusterv1.WatchLabel: "green"})
	for _, name := range []string{"mine", "theirs"} {
		h.kubeconfig(t, name, h.workload.Kubeconfig())
	}
	conn := h.connected(t, h.name("mine"))
	if s := h.State(h.name("theirs")); s.Phase != fleet.PhaseUnknown {
		t.Errorf("%+v", s)
	}
	relabel := func(value string) {
		t.Helper()
		h.patch(t, c, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, clusterv1.WatchLabel, value))
	}
	start := time.Now()
	relabel("green")
	<-conn.Done()
	t.Logf("released %s after the relabelling", time.Since(start))
	relabel("blue")
	if h.connected(t, h.name("mine")) == conn {
		t.Error("the same Connection")
	}
}

// A new token in the Secret is swapped in below the watches; a token that is
// revoked without one ends the connection until there is a new one.
func TestRotationOfTheSecret(t *testing.T) {
	long.Test(t)
	h := start(t, quick(capi.New(capi.Options{})))
	newToken := h.tokens(t)
	h.cluster(t, "one", nil)
	h.kubeconfig(t, "one", h.withToken(newToken()))
	conn := h.connected(t, h.name("one"))

	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	watch, err := conn.Dynamic().Resource(maps).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	defer watch.Stop()
	first := h.whoAmI(t, conn)
	h.kubeconfig(t, "one", h.withToken(newToken()))
	h.awaitOtherToken(t, conn, first)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
	must.Succeed(t, conn.Client().Create(t.Context(), object))
	for event := range watch.ResultChan() {
		if o, ok := event.Object.(client.Object); ok && o.GetName() == object.Name {
			break
		}
	}
	if now, _ := h.Connection(h.name("one")); now != conn || conn.Context().Err() != nil {
		t.Error("the connection did not survive")
	}

	// Revoked: whoever deletes the Secrets that the tokens are bound to.
	must.Succeed(t, h.workloads.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("default")))
	h.expect(t, h.name("one"), fleet.PhaseUnreachable, fleet.ReasonUnauthorized)
	start := time.Now()
	h.kubeconfig(t, "one", h.withToken(newToken()))
	h.connected(t, h.name("one"))
	t.Logf("connected again %s after the new token", time.Since(start))
}

// A Secret that the cache doesn't know is still read, and a hostile one refused.
func TestSecretsOfTheHub(t *testing.T) {
	h := start(t, quick(capi.New(capi.Options{})))
	h.cluster(t, "one", nil)
	h.kubeconfig(t, "one", fleettest.Kubeconfig("https://api.example.com", nil, &clientcmdapi.AuthInfo{TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"}))
	h.expect(t, h.name("one"), fleet.PhaseRefused, fleet.ReasonKubeconfigRefused)
	h.kubeconfig(t, "one", nil)
	h.expect(t, h.name("one"), fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable)
	t.Log(h.State(h.name("one")).Message)
	h.kubeconfig(t, "one", h.workload.Kubeconfig())
	conn := h.connected(t, h.name("one"))

	h.delete(t, h.kubeconfigOf("one", nil))
	time.Sleep(300 * time.Millisecond)
	if conn.Context().Err() != nil {
		t.Error("disconnected for a Secret that may be made again")
	}
}
