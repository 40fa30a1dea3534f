// SPDX-License-Identifier: Apache-2.0

// Package suite runs the tests of packages which start many processes: they share servers and programs, and mostly wait.
package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// Suite is the tests of a package.
type Suite struct {
	// Name of the package.
	Name string
	// Parallel is the number of tests at once, unless -parallel says another one.
	Parallel int
	// Prepare makes what all tests share. It gets the root of the checkout, if the package is a folder of
	// test/, and a folder that goes away with the run.
	Prepare func(ctx context.Context, root, dir string) error
	// CleanUp ends what Prepare started, after the tests; servers of package apiserver end by themselves. It may be nil.
	CleanUp func()
}

// Run runs the tests, unless -short is set, and ends this process.
func (s Suite) Run(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Printf("%s is skipped: -short is set\n", s.Name)
		os.Exit(0)
	}
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = flag.Set(parallel.Name, strconv.Itoa(s.Parallel))
	}
	ctrllog.SetLogger(logr.Discard()) // of this process; those under test have logs of their own
	code, err := s.run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "preparing %s: %v\n", s.Name, err)
	}
	os.Exit(code)
}

func (s Suite) run(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "chandler-"+s.Name+"-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	defer apiserver.StopAll() // before that, as they write into it
	if s.CleanUp != nil {
		defer s.CleanUp()
	}
	if err := s.Prepare(context.Background(), root, dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// RunOnServer runs the tests of a package two folders below the root on one API server, which has Cluster API's Clusters and these
// kinds of the product, as "addonstacks".
func RunOnServer(m *testing.M, name string, server **apiserver.Server, kinds ...string) {
	Suite{Name: name, Parallel: 1, Prepare: func(ctx context.Context, root, dir string) error {
		crds, err := apiserver.ClusterAPICRDs(ctx, "clusters")
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			crds = append(crds, filepath.Join(root, "config/crd/bases/addons.cluster.x-k8s.io_"+kind+".yaml"))
		}
		*server, err = apiserver.Start(ctx, dir, controlplane.Options{Name: "shared", CRDPaths: crds})
		return err
	}}.Run(m)
}
