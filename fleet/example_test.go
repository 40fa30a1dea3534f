// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/single"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
	"github.com/cluster-chandler/chandler/fleet/self"
)

// A Provider is what a manager of multicluster-runtime asks for clusters.
var (
	_ multicluster.Provider         = &fleet.Provider{}
	_ multicluster.ProviderRunnable = &fleet.Provider{}
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// A whole program: its reconciler gets the objects of all clusters, here of the manager's own.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := run(ctx, controlplane.Config(), cancel); err != nil {
		fmt.Println(err)
	}
	// Output: self#local has namespace kube-system
}

func run(ctx context.Context, config *rest.Config, done func()) error {
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{self.Source{}}})
	mgr, err := mcmanager.New(config, provider, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := provider.SetupWithManager(mgr.GetLocalManager()); err != nil {
		return err
	}
	err = mcbuilder.ControllerManagedBy(mgr).Named("namespaces").For(&corev1.Namespace{}).Complete(mcreconcile.Func(
		func(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
			// While the cluster isn't connected this is multicluster.ErrClusterNotFound. The builder takes it as no error:
			// the request comes again when the cluster is back.
			of, err := mgr.GetCluster(ctx, request.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			namespace := &corev1.Namespace{}
			// This may be fleet.ErrCacheNotSynced. Returned, it has the request come again.
			if err := of.GetClient().Get(ctx, request.NamespacedName, namespace); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if namespace.Name == "kube-system" {
				fmt.Println(request.ClusterName, "has namespace", namespace.Name)
				done()
			}
			return ctrl.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// From connects to the clusters of another provider by their rest.Config.
func ExampleFrom() {
	theirs, err := cluster.New(controlplane.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{fleet.From("single", single.New("prod", theirs), nil)}})
	controlplane.Run(provider, nil, "single#prod")
	// Output: single#prod: Connected
}

// FromClusters keeps the clusters of another provider, with their caches.
func ExampleFromClusters() {
	theirs, err := cluster.New(controlplane.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{fleet.FromClusters("single", single.New("prod", theirs), nil)}})
	controlplane.Run(provider, nil, "single#prod")
	// Output: single#prod: Connected
}
