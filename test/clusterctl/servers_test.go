// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
)

// certManagerVersion is the one that clusterctl would install. Only its CRDs are needed: in these tests nobody serves
// webhooks in the management clusters.
const certManagerVersion = "v1.21.1"

// server is a running control plane with workers.
type server struct {
	*apiserver.Server
	kubeconfig string // file, of an admin
}

func startServer(ctx context.Context, name string, crds ...string) (*server, error) {
	started, err := apiserver.Start(ctx, world.dir, controlplane.Options{Name: name, Workers: true, CRDPaths: crds})
	if err != nil {
		return nil, err
	}
	s := &server{Server: started, kubeconfig: filepath.Join(world.dir, name+".kubeconfig")}
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
	must.Succeed(t, err)
	return s
}
