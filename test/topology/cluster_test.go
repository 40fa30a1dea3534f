// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/topology"
)

// createCluster makes a Cluster. If the test fails, it says what became of that.
func createCluster(t *testing.T, name, class, version string, workers int32) {
	t.Helper()
	must.Succeed(t, world.Create(t.Context(), topology.NewCluster(key(name), class, version, workers)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("hooks of %s:\n%s\nthe end of the core manager's log:\n%s", name, strings.Join(world.hooks.calls(name), "\n"), world.Core.Tail())
		}
	})
}

// setVersion wants another version. Cluster API takes it once the last hook of the upgrade before lets go, which no condition
// of a Cluster says.
func setVersion(t *testing.T, cluster, version string) {
	t.Helper()
	until(t, cluster+" is to take a version", func() error { return world.SetVersion(t.Context(), key(cluster), version) })
}

// forceVersion sets another version while the previous one isn't reached, in one write: a patch that another write
// comes between is applied as a whole again.
func forceVersion(t *testing.T, cluster, version string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: ""}}, "spec": {"topology": {"version": %q}}}`,
		clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation, version)
	must.Succeed(t, world.Patch(t.Context(), topology.NewCluster(key(cluster), "", "", 0), client.RawPatch(types.MergePatchType, patch)))
}

// setClass switches a Cluster to a class and a version at once.
func setClass(t *testing.T, cluster, class, version string) {
	t.Helper()
	must.Succeed(t, world.SetClass(t.Context(), key(cluster), class, version))
}

func deleteCluster(t *testing.T, name string) {
	t.Helper()
	must.Succeed(t, world.Delete(t.Context(), topology.NewCluster(key(name), "", "", 0)))
}

// awaitGone returns when a Cluster, and its workload cluster, are gone.
func awaitGone(t *testing.T, cluster string) {
	t.Helper()
	until(t, cluster+" is to be gone", func() error {
		obj := &clusterv1.Cluster{}
		if err := world.Get(t.Context(), key(cluster), obj); err == nil {
			return fmt.Errorf("it is there: %v", obj.Status.Conditions)
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		if world.Provider.Workload(key(cluster)) != nil {
			return errors.New("its workload cluster is there")
		}
		return nil
	})
}

// annotate sets an annotation of a Cluster.
func annotate(t *testing.T, cluster, name, value string) {
	t.Helper()
	obj := topology.NewCluster(key(cluster), "", "", 0)
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, name, value)
	must.Succeed(t, world.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, patch)))
}
