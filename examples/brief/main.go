// SPDX-License-Identifier: Apache-2.0

// Command brief is the shortest program that uses the library, as docs/fleet.md shows it: it logs the ConfigMaps of all clusters.
package main

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

func reconcile(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
	ctrl.LoggerFrom(ctx).Info("A ConfigMap", "cluster", request.ClusterName, "name", request.NamespacedName)
	return ctrl.Result{}, nil
}

func main() {
	ctrl.SetLogger(zap.New())
	sources := []fleet.Source{secrets.New(secrets.Options{}), secrets.New(secrets.Options{Name: "edge", Label: "example.com/edge"})}
	provider := fleet.NewProvider(fleet.Options{Sources: sources})
	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, manager.Options{})
	if err == nil {
		err = errors.Join(provider.SetupWithManager(mgr.GetLocalManager()),
			mcbuilder.ControllerManagedBy(mgr).Named("example").For(&corev1.ConfigMap{}).Complete(mcreconcile.Func(reconcile)),
			mgr.Start(ctrl.SetupSignalHandler()))
	}
	if err != nil {
		ctrl.Log.Error(err, "The program ends")
		os.Exit(1)
	}
}
