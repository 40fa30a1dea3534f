// SPDX-License-Identifier: Apache-2.0

// Command controller copies the ConfigMap "trust" of one namespace into all namespaces: of a
// fleet of clusters, or with --single of the one cluster that it runs for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

func main() {
	namespace := flag.String("namespace", "default", "namespace of the kubeconfig Secrets and of the ConfigMap to copy")
	single := flag.Bool("single", false, "work on the cluster of this manager alone")
	loopback := flag.Bool("allow-loopback", false, "accept kubeconfigs for servers on this host")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *namespace, *single, *loopback); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace string, single, loopback bool) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	var provider multicluster.Provider // none: the reconciler works on the cluster of the manager
	var clusters *fleet.Provider
	if !single {
		// The manager needs its own objects of one namespace alone.
		options.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}
		clusters = fleet.NewProvider(fleet.Options{
			Sources:       []fleet.Source{secrets.New(secrets.Options{})},
			AllowLoopback: loopback,
		})
		provider = clusters
	}
	mgr, err := mcmanager.New(config, provider, options)
	if err != nil {
		return err
	}
	if clusters != nil {
		if err := clusters.SetupWithManager(mgr.GetLocalManager()); err != nil {
			return err
		}
		report(clusters)
	}
	trust := &reconciler{manager: mgr, from: client.ObjectKey{Namespace: namespace, Name: "trust"}}
	if err := mcbuilder.ControllerManagedBy(mgr).Named("trust").For(&corev1.Namespace{}).Complete(trust); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// report logs how each cluster fares. State and Subscribe are what a status is made of.
func report(clusters *fleet.Provider) {
	log := ctrl.Log.WithName("fleet")
	clusters.Subscribe(func(name multicluster.ClusterName) {
		state := clusters.State(name)
		log.Info("Cluster changed", "cluster", name, "phase", state.Phase, "reason", state.Reason, "message", state.Message)
	})
}

// reconciler copies a ConfigMap into one namespace of one cluster. It doesn't know how many
// clusters there are.
type reconciler struct {
	manager mcmanager.Manager
	from    client.ObjectKey
}

// Reconcile implements mcreconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	cluster, err := r.manager.GetCluster(ctx, request.ClusterName)
	if errors.Is(err, multicluster.ErrClusterNotFound) {
		return ctrl.Result{}, nil // it is disconnected: its namespaces are reconciled when it is back
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	target := cluster.GetClient()
	namespace := &corev1.Namespace{}
	if err := target.Get(ctx, request.NamespacedName, namespace); err != nil || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	source := &corev1.ConfigMap{}
	if err := r.manager.GetLocalManager().GetClient().Get(ctx, r.from, source); err != nil {
		return ctrl.Result{}, fmt.Errorf("getting the ConfigMap to copy: %w", err)
	}

	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Name, Name: r.from.Name}, Data: source.Data}
	found := &corev1.ConfigMap{}
	err = target.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, target.Create(ctx, wanted)
	case err != nil || maps.Equal(found.Data, source.Data):
		return ctrl.Result{}, err
	}
	found.Data = source.Data
	return ctrl.Result{}, target.Update(ctx, found)
}
