// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// server is a running API server and how tests talk to it, as an admin.
type server struct {
	*controlplane.ControlPlane
	client.WithWatch
	clientset *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	audit     *audit.Log
}

// running is every server that was started, for stopServers.
var running struct {
	sync.Mutex
	servers []*server
}

// startHub starts the management cluster, with the CRDs of Cluster API and of
// Chandler, and Chandler's ClusterRole.
func startHub(ctx context.Context) (*server, error) {
	crds, err := clusterAPICRDs(ctx)
	if err != nil {
		return nil, err
	}
	hub, err := startServer(ctx, controlplane.Options{
		Name:     "management",
		CRDPaths: append(crds, filepath.Join(world.root, "config/crd/bases")),
	})
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(world.root, "config/rbac/role.yaml"))
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		return nil, fmt.Errorf("reading config/rbac/role.yaml: %w", err)
	}
	return hub, hub.Create(ctx, role)
}

// workloadServer returns the workload control plane of this number, from 0 to
// 2; it is started when it is first asked for.
func workloadServer(t *testing.T, number int) *server {
	t.Helper()
	w, err := workloadServers[number]()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var workloadServers = [3]func() (*server, error){
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-0") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-1") }),
	sync.OnceValues(func() (*server, error) { return startWorkload("workload-2") }),
}

func startWorkload(name string) (*server, error) {
	return startServer(context.Background(), controlplane.Options{Name: name, Workers: true, Nodes: 2})
}

func startServer(ctx context.Context, o controlplane.Options) (*server, error) {
	o.AuditLog = filepath.Join(world.dir, o.Name+"-audit.log")
	plane, err := controlplane.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &server{ControlPlane: plane}
	running.Lock()
	running.servers = append(running.servers, s)
	running.Unlock()
	config := plane.Config()
	if s.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme()}); err != nil {
		return nil, err
	}
	if s.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	s.audit = audit.Of(s.clientset, o.AuditLog)
	s.dynamic, err = dynamic.NewForConfig(config)
	return s, err
}

func stopServers() {
	running.Lock()
	defer running.Unlock()
	for _, s := range running.servers {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping", s.Name()+":", err)
		}
	}
}

var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// clusterAPICRDs are the files of the kinds that Chandler reads.
func clusterAPICRDs(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	cmd.Dir = world.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	bases := filepath.Join(strings.TrimSpace(string(out)), "core/config/crd/bases")
	return []string{
		filepath.Join(bases, "cluster.x-k8s.io_clusters.yaml"),
		filepath.Join(bases, "cluster.x-k8s.io_clusterclasses.yaml"),
	}, nil
}

// createNamespace makes a namespace on a server.
func (s *server) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name = name
	if err := s.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatalf("creating namespace %s on %s: %v", name, s.Name(), err)
	}
}
