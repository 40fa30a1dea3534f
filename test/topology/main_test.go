// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/suite"
	"github.com/cluster-chandler/chandler/test/topology"
)

// Versions of Kubernetes that most Clusters only say they are of: there are no programs of them.
const v34, v35, v36 = "v1.34.0", "v1.35.0", "v1.36.0"

// localClass is the ClusterClass of most Clusters.
const localClass = "local"

// namespace of all Clusters.
const namespace = "default"

// world is what all tests share.
var world struct {
	*topology.Environment
	hooks *extension
	root  string // of the checkout
	// older and newer are versions of Kubernetes that there are programs of.
	older, newer string
	// chandler is the path of its binary.
	chandler string
	// oldest says that Cluster API is the oldest one that Chandler works with; see TestOldestClusterAPI.
	oldest bool
	// killing says that a test kills Cluster API's core manager now and then.
	killing atomic.Bool
}

func TestMain(m *testing.M) {
	suite.Suite{Name: "topology", Parallel: 3, Prepare: prepare, CleanUp: cleanUp}.Run(m)
}

func prepare(ctx context.Context, root, dir string) error {
	var err error
	core := os.Getenv("CHANDLER_CORE_MODULE")
	world.oldest, world.root = core != "", root
	world.Environment, err = topology.Start(ctx, topology.Options{
		Root: root, Dir: dir, CoreModule: core, CRDPaths: []string{filepath.Join(root, "config/crd/bases")}, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
	})
	if err != nil {
		return err
	}
	if world.chandler, err = manager.Build(ctx, root, dir, "v0.0.0"); err != nil {
		return err
	}
	if err := buildOlder(ctx); err != nil {
		return err
	}
	if world.oldest {
		world.hooks = &extension{stop: func() {}} // it has hooks that an older Cluster API doesn't know
		return nil
	}
	if world.hooks, err = startExtension(world.Environment, filepath.Join(dir, "extension")); err != nil {
		return err
	}
	return createClass(ctx, topology.Class{Namespace: namespace, Name: localClass, KubernetesVersions: []string{v34, v35, v36}})
}

// buildOlder builds the API server of the previous minor, which takes minutes where there is none yet: no test waits so long
// for a control plane.
func buildOlder(ctx context.Context) error {
	code, err := world.Clientset.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	before := version.MustParseSemantic(code.GitVersion).SubtractMinor(1)
	world.older, world.newer = fmt.Sprintf("v%d.%d.9", before.Major(), before.Minor()), code.GitVersion
	_, err = controlplane.BinDir(ctx, os.Stderr, "kube-apiserver@"+world.older)
	return err
}

func createClass(ctx context.Context, class topology.Class) error {
	for _, obj := range class.Objects() {
		if err := world.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func cleanUp() {
	if world.hooks != nil {
		world.hooks.stop()
	}
	if world.Environment != nil {
		world.Stop()
	}
}
