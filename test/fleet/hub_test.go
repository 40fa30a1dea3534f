// SPDX-License-Identifier: Apache-2.0

// Package fleet_test has the tests of module fleet on real API servers.
package fleet_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
	"github.com/cluster-chandler/chandler/test/wait"
)

// patience is how long a test waits for what should take milliseconds.
const patience = 30 * time.Second

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(inventoryv1alpha1.AddToScheme(scheme))
}

// planes are a management cluster and two workload clusters that all tests share.
var planes []*controlplane.ControlPlane

func TestMain(m *testing.M) {
	suite.Suite{Name: "fleet", Parallel: 1, Prepare: prepare, CleanUp: cleanUp}.Run(m)
}

func prepare(ctx context.Context, _, _ string) error {
	crds, err := apiserver.ClusterAPICRDs(ctx, "clusters")
	if err != nil {
		return err
	}
	inventory, err := apiserver.ModuleDir(ctx, "sigs.k8s.io/cluster-inventory-api")
	if err != nil {
		return err
	}
	crds = append(crds, filepath.Join(inventory, "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml"))
	crds = append(crds, "testdata/shoots.yaml")
	planes, err = controlplane.StartAll(ctx, controlplane.Options{Name: "hub", CRDPaths: crds},
		controlplane.Options{Name: "workload"}, controlplane.Options{Name: "other"})
	return err
}

func cleanUp() {
	for _, p := range planes {
		_ = p.Stop()
	}
}

// quick are options that let a test see several rounds of everything.
func quick(sources ...fleet.Source) fleet.Options {
	return fleet.Options{
		Concurrency: 4, ConnectTimeout: 5 * time.Second,
		RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond,
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 5 * time.Second, ProbeFailures: 3,
		AllowLoopback: true, Sources: sources,
	}
}

// hub is a management cluster with a namespace for one test, and a manager with a fleet in it.
type hub struct {
	*fleet.Provider
	client.Client
	namespace       string
	local           manager.Manager // once it runs
	config          *rest.Config
	workload, other *controlplane.ControlPlane
	workloads       client.Client
}

func start(t *testing.T, o fleet.Options) *hub {
	t.Helper()
	h := newHub(t)
	h.run(t, o)
	return h
}

// newHub has no manager yet.
func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{config: planes[0].Config(), workload: planes[1], other: planes[2]}
	var err error
	if h.Client, err = client.New(h.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if h.workloads, err = client.New(h.workload.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	h.create(t, namespace)
	h.namespace = namespace.Name
	return h
}

// run starts a manager with a fleet. It may be called again, for a manager that follows.
func (h *hub) run(t *testing.T, o fleet.Options) (stop func()) {
	t.Helper()
	h.Provider = fleet.NewProvider(o)
	mgr, err := mcmanager.New(h.config, h.Provider, ctrl.Options{
		Scheme:     scheme,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{h.namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	must.Succeed(t, err)
	h.local = mgr.GetLocalManager()
	must.Succeed(t, h.SetupWithManager(h.local))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (h *hub) create(t *testing.T, object client.Object) {
	t.Helper()
	must.Succeed(t, h.Create(t.Context(), object))
}

func (h *hub) delete(t *testing.T, object client.Object) {
	t.Helper()
	must.Succeed(t, h.Delete(t.Context(), object))
}

// patch merges into an object.
func (h *hub) patch(t *testing.T, object client.Object, patch string) {
	t.Helper()
	must.Succeed(t, h.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// expect waits for a phase and a reason, and returns the message.
func (h *hub) expect(t *testing.T, name multicluster.ClusterName, phase fleet.Phase, reason string) string {
	t.Helper()
	wait.Until(t, patience, "the state of "+name.String(), func() error {
		if s := h.State(name); s.Phase != phase || s.Reason != reason {
			return fmt.Errorf("%s is %s/%s (%s), want %s/%s", name, s.Phase, s.Reason, s.Message, phase, reason)
		}
		return nil
	})
	return h.State(name).Message
}

// connected waits for a connection.
func (h *hub) connected(t *testing.T, name multicluster.ClusterName) *fleet.Connection {
	t.Helper()
	h.expect(t, name, fleet.PhaseConnected, fleet.ReasonConnected)
	conn, ok := h.Connection(name)
	if !ok {
		t.Fatalf("%s is connected, but has no Connection", name)
	}
	return conn
}

// gone waits until a cluster is unknown, and its connection ended.
func (h *hub) gone(t *testing.T, name multicluster.ClusterName, conn *fleet.Connection) {
	t.Helper()
	select {
	case <-conn.Done():
	case <-time.After(patience):
		t.Fatalf("the connection to %s continues", name)
	}
	h.expect(t, name, fleet.PhaseUnknown, fleet.ReasonClusterUnknown)
}

// works creates an object through a connection.
func works(t *testing.T, conn *fleet.Connection) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"}}
	must.Succeed(t, conn.Client().Create(t.Context(), object))
}
