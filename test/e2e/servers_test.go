// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// server is a running API server and how tests talk to it, as an admin.
type server struct {
	*apiserver.Server
	clientset *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
}

// startHub starts a management cluster, with the CRDs of Cluster API and of
// Chandler, and Chandler's ClusterRole.
func startHub(ctx context.Context, o controlplane.Options) (*server, error) {
	crds, err := apiserver.ClusterAPICRDs(ctx, "clusters", "clusterclasses")
	if err != nil {
		return nil, err
	}
	o.CRDPaths = append(crds, filepath.Join(world.root, "config/crd/bases"))
	hub, err := startServer(ctx, o)
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

// additionalServer returns the workload control plane of any number. From 3 on nothing but
// the API server runs there.
func additionalServer(t *testing.T, number int) *server {
	t.Helper()
	if number < len(workloadServers) {
		return workloadServer(t, number)
	}
	additional.Lock()
	defer additional.Unlock()
	if additional.servers[number] == nil {
		s, err := startServer(context.Background(), controlplane.Options{Name: fmt.Sprintf("workload-%d", number)})
		if err != nil {
			t.Fatal(err)
		}
		additional.servers[number] = s
	}
	return additional.servers[number]
}

var additional = struct {
	sync.Mutex
	servers map[int]*server
}{servers: map[int]*server{}}

// clustersWanted is how many Clusters a test with many of them is to have, 0 for its least.
func clustersWanted(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CHANDLER_E2E_CLUSTERS")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("CHANDLER_E2E_CLUSTERS: %v", err)
	}
	return n
}

func startServer(ctx context.Context, o controlplane.Options) (*server, error) {
	started, err := apiserver.Start(ctx, world.dir, o)
	if err != nil {
		return nil, err
	}
	s := &server{Server: started, clientset: started.Clientset}
	s.dynamic, err = dynamic.NewForConfig(s.Config())
	return s, err
}

var scheme = apiserver.Scheme

// createNamespace makes a namespace on a server.
func (s *server) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name = name
	if err := s.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatalf("creating namespace %s on %s: %v", name, s.Name(), err)
	}
}
