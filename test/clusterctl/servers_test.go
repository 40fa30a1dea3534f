// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// certManagerVersion is the one that clusterctl would install. Only its CRDs are needed: in these tests nobody serves
// webhooks in the management clusters.
const certManagerVersion = "v1.21.1"

// server is a running control plane with workers.
type server struct {
	*controlplane.ControlPlane
	client.Client
	clientset  *kubernetes.Clientset
	kubeconfig string // file, of an admin
	audit      *audit.Log
}

// running is every server that was started, for stopServers.
var running struct {
	sync.Mutex
	servers []*server
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

func startServer(ctx context.Context, name string, crds ...string) (*server, error) {
	s := &server{kubeconfig: filepath.Join(world.dir, name+".kubeconfig")}
	var err error
	options := controlplane.Options{Name: name, Workers: true, AuditLog: filepath.Join(world.dir, name+"-audit.log"), CRDPaths: crds}
	if s.ControlPlane, err = controlplane.Start(ctx, options); err != nil {
		return nil, err
	}
	running.Lock()
	running.servers = append(running.servers, s)
	running.Unlock()
	if s.Client, err = client.New(s.Config(), client.Options{Scheme: scheme()}); err != nil {
		return nil, err
	}
	if s.clientset, err = kubernetes.NewForConfig(s.Config()); err != nil {
		return nil, err
	}
	s.audit = audit.Of(s.clientset, options.AuditLog)
	return s, os.WriteFile(s.kubeconfig, s.Kubeconfig(), 0o600)
}

// startManagement starts a management cluster that has nothing but cert-manager's API.
func startManagement(ctx context.Context, name string) (*server, error) {
	crds, err := certManagerCRDs(ctx)
	if err != nil {
		return nil, err
	}
	return startServer(ctx, name, crds)
}

// certManagerCRDs is the folder of cert-manager's CRDs, in the module cache.
func certManagerCRDs(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/cert-manager/cert-manager@"+certManagerVersion)
	cmd.Dir = world.dir // its dependencies are not ours
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding cert-manager's CRDs: %w\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	return filepath.Join(module.Dir, "deploy/crds"), nil
}

// management starts one, which goes away with the test.
func management(t *testing.T, name string) *server {
	t.Helper()
	s, err := startManagement(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterctlv1.AddToScheme, addonsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})
