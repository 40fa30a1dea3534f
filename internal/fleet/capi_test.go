// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// planes are a management cluster and a workload cluster that all tests share.
var planes = sync.OnceValues(func() ([]*controlplane.ControlPlane, error) {
	crds, err := apiserver.ClusterAPICRDs(context.Background(), "clusters")
	if err != nil {
		return nil, err
	}
	return controlplane.StartAll(context.Background(),
		controlplane.Options{Name: "hub", CRDPaths: crds}, controlplane.Options{Name: "workload"})
})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if started.Load() {
		if all, err := planes(); err == nil {
			for _, p := range all {
				_ = p.Stop()
			}
		}
	}
	os.Exit(code)
}

var started atomic.Bool

// hubTest is a management cluster with a namespace for one test, and a manager
// with a provider in it.
type hubTest struct {
	*Provider
	client.Client
	namespace string
	workload  *controlplane.ControlPlane
	workloads client.Client
}

func startHub(t *testing.T, o Options) *hubTest {
	t.Helper()
	if testing.Short() {
		t.Skip("starts control planes")
	}
	started.Store(true)
	all, err := planes()
	if err != nil {
		t.Fatal(err)
	}
	hub, workload := all[0], all[1]
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = clusterv1.AddToScheme(scheme)
	h := &hubTest{Provider: NewProvider(o), workload: workload}
	if h.Client, err = client.New(hub.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if h.workloads, err = client.New(workload.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	h.create(t, namespace)
	h.namespace = namespace.Name

	mgr, err := mcmanager.New(hub.Config(), h.Provider, ctrl.Options{
		Scheme:     scheme,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{h.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	return h
}

func (h *hubTest) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := h.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// cluster makes a Cluster with a finalizer, as Cluster API does.
func (h *hubTest) cluster(t *testing.T, name string, labels map[string]string) *clusterv1.Cluster {
	t.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: labels, Finalizers: []string{clusterv1.ClusterFinalizer}},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
	h.create(t, c)
	return c
}

// kubeconfig writes a Cluster's Secret.
func (h *hubTest) kubeconfig(t *testing.T, name string, data []byte) {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: name}},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": data},
	}
	err := h.Create(t.Context(), s)
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Sprintf(`{"data":{"value":%q}}`, base64.StdEncoding.EncodeToString(data))
		err = h.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *hubTest) name(cluster string) multicluster.ClusterName {
	return multicluster.ClusterName(h.namespace + "/" + cluster)
}

func (h *hubTest) expect(t *testing.T, cluster string, phase Phase, reason string) {
	t.Helper()
	(&fleetTest{Provider: h.Provider}).expect(t, h.name(cluster), phase, reason)
}

func (h *hubTest) connected(t *testing.T, cluster string) *Connection {
	t.Helper()
	return (&fleetTest{Provider: h.Provider}).connected(t, h.name(cluster))
}

// tokens makes a user of the workload cluster, and returns what makes tokens for it.
func (h *hubTest) tokens(t *testing.T) func() string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "chandler-"}}
	if err := h.workloads.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "chandler-"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if err := h.workloads.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return func() string {
		// Bound to a Secret of its own, so that it can be revoked alone.
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "token-"}}
		if err := h.workloads.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
		}}
		if err := h.workloads.SubResource("token").Create(t.Context(), account, request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
}

func (h *hubTest) withToken(token string) []byte {
	c := h.workload.Config()
	return kubeconfigOf(c.Host, c.CAData, user(token))
}

func TestClustersOfTheHub(t *testing.T) {
	h := startHub(t, quick())
	c := h.cluster(t, "one", nil)
	h.expect(t, "one", PhaseWaiting, ReasonKubeconfigMissing)
	start := time.Now()
	h.kubeconfig(t, "one", h.workload.Kubeconfig())
	conn := h.connected(t, "one")
	t.Logf("connected %s after the Secret", time.Since(start))

	start = time.Now()
	facts, err := conn.Facts(t.Context())
	if err != nil || !facts.Has("apps/v1/Deployment") || !facts.Has("v1") || len(facts.Incomplete) > 0 {
		t.Errorf("%d API versions, %v", len(facts.APIVersions), err)
	}
	t.Logf("%s, %d API versions in %s", facts.KubernetesVersion, len(facts.APIVersions), time.Since(start))

	t.Run("reads and writes", func(t *testing.T) { readsAndWrites(t, conn) })
	t.Run("caches what is labelled", func(t *testing.T) { cachesLabelled(t, conn) })

	// A Cluster that is being deleted stays connected until it is gone.
	if err := h.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if isDone(conn) {
		t.Fatal("disconnected while the Cluster is being deleted")
	}
	if err := h.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	<-conn.Done()
	eventually(t, func() string {
		if s := h.State(h.name("one")); s.Phase != PhaseUnknown {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
}

func readsAndWrites(t *testing.T, conn *Connection) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
	if err := conn.Client().Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := conn.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Error(err)
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := conn.Dynamic().Resource(maps).Namespace("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	// A kind that appears later.
	unknown := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Thing"}}
	if err := conn.Client().Get(t.Context(), client.ObjectKey{Name: "x"}, unknown); err == nil {
		t.Error("no error for an unknown kind")
	}
	// The cache starts no informer for a read.
	if err := conn.GetCache().List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("the cache answers for a kind that nobody watches")
	}
}

func cachesLabelled(t *testing.T, conn *Connection) {
	informer, err := conn.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *corev1.ConfigMap, 10)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) { seen <- o.(*corev1.ConfigMap) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{nil, {"example.com/owner": "me"}} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-", Labels: labels}}
		if err := conn.Client().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case o := <-seen:
		if o.Labels["example.com/owner"] != "me" || o.ManagedFields != nil {
			t.Errorf("cached %v with %d managedFields", o.Labels, len(o.ManagedFields))
		}
	case <-time.After(patience):
		t.Error("nothing was cached")
	}
}

// A Cluster that is relabelled out of the watch filter is let go at once, and
// taken up when it comes back.
func TestWatchFilter(t *testing.T) {
	o := quick()
	o.WatchFilter = "blue"
	h := startHub(t, o)
	c := h.cluster(t, "mine", map[string]string{clusterv1.WatchLabel: "blue"})
	h.cluster(t, "theirs", map[string]string{clusterv1.WatchLabel: "green"})
	for _, name := range []string{"mine", "theirs"} {
		h.kubeconfig(t, name, h.workload.Kubeconfig())
	}
	conn := h.connected(t, "mine")
	if s := h.State(h.name("theirs")); s.Phase != PhaseUnknown {
		t.Errorf("%+v", s)
	}
	relabel := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, clusterv1.WatchLabel, value)
		if err := h.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	relabel("green")
	<-conn.Done()
	t.Logf("released %s after the relabelling", time.Since(start))
	relabel("blue")
	if h.connected(t, "mine") == conn {
		t.Error("the same Connection")
	}
}

// A new token in the Secret is swapped in below the watches; a token that is
// revoked without one ends the connection until there is a new one.
func TestRotationOfTheSecret(t *testing.T) {
	h := startHub(t, quick())
	newToken := h.tokens(t)
	h.cluster(t, "one", nil)
	h.kubeconfig(t, "one", h.withToken(newToken()))
	conn := h.connected(t, "one")

	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	watch, err := conn.Dynamic().Resource(maps).Namespace("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	old := conn.identity.current.Load()
	second := h.withToken(newToken())
	start := time.Now()
	h.kubeconfig(t, "one", second)
	eventually(t, func() string {
		if conn.identity.current.Load() == old {
			return "the token was not swapped"
		}
		return ""
	})
	t.Logf("swapped %s after the Secret", time.Since(start))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
	if err := conn.Client().Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for event := range watch.ResultChan() {
		if o, ok := event.Object.(client.Object); ok && o.GetName() == object.Name {
			break
		}
	}
	if now, _ := h.Connection(h.name("one")); now != conn || isDone(conn) {
		t.Error("the connection did not survive")
	}

	// Revoked: whoever deletes the Secrets that the tokens are bound to.
	if err := h.workloads.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "one", PhaseUnreachable, ReasonUnauthorized)
	start = time.Now()
	h.kubeconfig(t, "one", h.withToken(newToken()))
	h.connected(t, "one")
	t.Logf("connected again %s after the new token", time.Since(start))
}

// A Secret that the cache doesn't know is still read, and a hostile one refused.
func TestSecretsOfTheHub(t *testing.T) {
	h := startHub(t, quick())
	h.cluster(t, "one", nil)
	h.kubeconfig(t, "one", []byte(testKubeconfig(goodCluster, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token")))
	h.expect(t, "one", PhaseRefused, ReasonKubeconfigRefused)
	h.kubeconfig(t, "one", nil)
	h.expect(t, "one", PhaseWaiting, ReasonKubeconfigUnreadable)
	t.Log(h.State(h.name("one")).Message)
	h.kubeconfig(t, "one", h.workload.Kubeconfig())
	conn := h.connected(t, "one")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "one-kubeconfig"}}
	if err := h.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if isDone(conn) {
		t.Error("disconnected for a Secret that may be made again")
	}
}

// answers is a reader that fills in what is asked for.
type answers func(into client.Object) error

func (a answers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return a(into)
}

func (answers) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// lastMember is the one that was reported last.
type lastMember struct{ Member }

func (l *lastMember) Set(_ multicluster.ClusterName, m Member) { l.Member = m }

func (l *lastMember) Remove(multicluster.ClusterName) { l.Member = Member{} }

// A kubeconfig stays in use while its Secret can't be read: the one that is gone is missing.
func TestKubeconfigStaysWhileItsSecretCannotBeRead(t *testing.T) {
	var failure error
	sink, version := &lastMember{}, "1"
	s := NewClusterAPISource("")
	s.sink = sink
	s.clusters = answers(func(o client.Object) error { o.SetNamespace("a"); o.SetName("b"); return nil })
	s.metadata = answers(func(o client.Object) error { o.SetResourceVersion(version); return nil })
	s.secrets = answers(func(o client.Object) error {
		o.SetResourceVersion(version)
		o.(*corev1.Secret).Data = map[string][]byte{"value": []byte("kubeconfig of version " + version)}
		return failure
	})
	secrets := schema.GroupResource{Resource: "secrets"}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "b"}}
	for _, step := range []struct {
		version    string
		failure    error
		kubeconfig string
		problem    string
	}{
		{"1", nil, "kubeconfig of version 1", ""},
		{"2", apierrors.NewForbidden(secrets, "b-kubeconfig", nil), "kubeconfig of version 1", "can't be read (Forbidden)"},
		{"2", nil, "kubeconfig of version 2", ""},
		{"3", apierrors.NewNotFound(secrets, "b-kubeconfig"), "", ""},
	} {
		version, failure = step.version, step.failure
		_, err := s.Reconcile(t.Context(), request)
		if (err != nil) != (step.problem != "") || string(sink.Kubeconfig) != step.kubeconfig || sink.Problem != step.problem {
			t.Errorf("version %s, %v: %q, %q, %v", step.version, step.failure, sink.Kubeconfig, sink.Problem, err)
		}
	}
}
