// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

const crds = "../../../config/crd/bases"

// server is a management cluster, and an admin's client of it.
type server = apiserver.Server

// clusterCRD is the file of Cluster API's Clusters.
var clusterCRD string

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
	clusters, err := apiserver.ClusterAPICRDs(context.Background(), "clusters")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	clusterCRD = clusters[0]
	if shared, err = apiserver.Start(context.Background(), dir, controlplane.Options{Name: "shared", CRDPaths: []string{crds, clusterCRD}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = shared.Stop() }()
	if err := shared.GrantScopes(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// ownServer is for a test that breaks it.
func ownServer(t *testing.T, crdPaths ...string) *server {
	t.Helper()
	s, err := apiserver.Start(t.Context(), t.TempDir(), controlplane.Options{Name: "own", CRDPaths: crdPaths})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// ownServerThatGrants is the same, with what the shared deployment does for instances.
func ownServerThatGrants(t *testing.T, crdPaths ...string) *server {
	t.Helper()
	s := ownServer(t, crdPaths...)
	if err := s.GrantScopes(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
