// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

const crds = "../../../config/crd/bases"

// server is a management cluster, and an admin's client of it.
type server struct {
	*controlplane.ControlPlane
	client.Client
	auditLog string
}

// clusterCRD is the file of Cluster API's Clusters.
var clusterCRD string

func findClusterCRD() (string, error) {
	out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return "", fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml"), nil
}

// shared is for tests that don't disturb others.
var shared *server

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Verbose() {
		logf.SetLogger(klog.Background())
	} else {
		logf.SetLogger(logr.Discard())
	}
	if testing.Short() {
		fmt.Println("internal/instance/registration is skipped: -short is set")
		return
	}
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("6") // tests mostly wait
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chandler-registration-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if clusterCRD, err = findClusterCRD(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = startServer(context.Background(), "shared", dir, crds, clusterCRD); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = shared.Stop() }()
	return m.Run()
}

func startServer(ctx context.Context, name, dir string, crdPaths ...string) (*server, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	s := &server{auditLog: filepath.Join(dir, name+"-audit.log")}
	var err error
	if s.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{Name: name, CRDPaths: crdPaths, AuditLog: s.auditLog}); err != nil {
		return nil, err
	}
	s.Client, err = client.New(s.Config(), client.Options{Scheme: scheme()})
	return s, err
}

// ownServer is for a test that breaks it.
func ownServer(t *testing.T, crdPaths ...string) *server {
	t.Helper()
	s, err := startServer(t.Context(), "own", t.TempDir(), crdPaths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})
