// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	"github.com/cluster-chandler/chandler/test/must"
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
	inventory, err := apiserver.ModuleDir(ctx, "sigs.k8s.io/cluster-inventory-api")
	if err != nil {
		return nil, err
	}
	o.CRDPaths = append(crds, filepath.Join(world.root, "config/crd/bases"),
		filepath.Join(inventory, "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml"))
	hub, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := hub.GrantScopes(context.WithoutCancel(ctx)); err != nil {
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
	role.Rules = append(role.Rules, rbacv1.PolicyRule{ // as config/profiles does
		APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get", "list", "watch"},
	})
	return hub, hub.Create(ctx, role)
}

// workloadServers is how many workload control planes tests share. Those with higher numbers
// have nothing but the API server.
const workloadServers = 3

// workloadServer returns the workload control plane of this number; it is started when it is
// first asked for.
func workloadServer(t *testing.T, number int) *server {
	t.Helper()
	start, _ := workloads.LoadOrStore(number, sync.OnceValues(func() (*server, error) {
		o := controlplane.Options{Name: fmt.Sprintf("workload-%d", number)}
		if number < workloadServers {
			o.Workers, o.Nodes = true, 2
		}
		return startServer(context.Background(), o)
	}))
	s, err := start.(func() (*server, error))()
	must.Succeed(t, err)
	return s
}

// ownServer starts a workload control plane for one test.
func ownServer(t *testing.T, o controlplane.Options) *server {
	t.Helper()
	s, err := startServer(context.Background(), o)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// workloads are functions that start control planes once, by number.
var workloads sync.Map

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
