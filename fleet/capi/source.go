// SPDX-License-Identifier: Apache-2.0

// Package capi finds the Clusters of Cluster API. It holds to Cluster API's contract, and needs none of its Go types.
package capi

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/objects"
)

const (
	// watchLabel is what Cluster API's managers filter by.
	watchLabel = "cluster.x-k8s.io/watch-filter"
	// The kubeconfig of a Cluster is in the Secret <name>-kubeconfig, under the key value.
	kubeconfigSuffix, kubeconfigKey = "-kubeconfig", "value"
	// missingRecheck is how often a Secret that isn't there is looked for, in
	// case the manager's cache doesn't cover it. Up to half of it is taken off.
	missingRecheck = time.Minute
)

// Options of a Source. Each may be left out.
type Options struct {
	// WatchFilter restricts the source to Clusters whose label cluster.x-k8s.io/watch-filter has
	// this value. Empty means all.
	WatchFilter string
	// Cluster is the type by which Clusters are read. Give the one that the program's manager
	// caches already, and its informer is shared. Defaults to the metadata of v1beta2.
	Cluster client.Object
}

// Source reports Cluster API's Clusters under the name
// "namespace/name", with the kubeconfig of the Secret "<name>-kubeconfig".
//
// Clusters come from the cache of the local manager, so its restrictions hold.
// Secrets are watched there by their metadata only, and the one that changed is
// read from the API server. A Cluster that is being deleted stays reported until
// it is gone: something may still have to be cleaned up in it. One that leaves the
// watch filter is removed at once.
type Source struct {
	reports  objects.Reports
	options  Options
	clusters client.Reader // cached
}

// New returns a Source.
func New(o Options) *Source {
	if o.Cluster == nil {
		o.Cluster = &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"}}
	}
	return &Source{options: o}
}

// Name implements fleet.Source. It is empty: Clusters keep their own names.
func (s *Source) Name() string { return "" }

// SetupWithManager implements fleet.Source.
func (s *Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	s.clusters = mgr.GetCache()
	s.reports.Setup(mgr, sink)
	isKubeconfig := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return strings.HasSuffix(o.GetName(), kubeconfigSuffix)
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("fleet-clusters").
		For(s.options.Cluster).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(clusterOfSecret), builder.WithPredicates(isKubeconfig)).
		WatchesRawSource(s.reports.Queue.Source()).
		WithOptions(objects.Options()).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the discovery of Clusters: %w", err)
	}
	return nil
}

func clusterOfSecret(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: o.GetNamespace(), Name: strings.TrimSuffix(o.GetName(), kubeconfigSuffix),
	}}}
}

// Refresh implements fleet.Source.
func (s *Source) Refresh(name multicluster.ClusterName) { s.reports.Refresh(name) }

// Reconcile reports one Cluster. It writes nothing.
func (s *Source) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	name := objects.NameOf(request.NamespacedName)
	cluster, ok := s.options.Cluster.DeepCopyObject().(client.Object)
	if !ok {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("%T is not an object", s.options.Cluster))
	}
	err := s.clusters.Get(ctx, request.NamespacedName, cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the Cluster: %w", err)
	}
	if exists := err == nil; !exists || !s.inScope(cluster) {
		s.reports.Remove(request.NamespacedName)
		return reconcile.Result{}, nil
	}

	of := types.NamespacedName{Namespace: request.Namespace, Name: request.Name + kubeconfigSuffix}
	kubeconfig, err := s.reports.Secrets.Read(ctx, request.NamespacedName, of, kubeconfigKey)
	s.reports.Sink.Set(name, fleet.Member{
		ID:         string(cluster.GetUID()),
		Kubeconfig: kubeconfig.Data,
		Problem:    kubeconfig.Problem,
		Origin:     "Secret " + of.String(),
		Labels:     cluster.GetLabels(),
	})
	if err == nil && kubeconfig.Data == nil {
		return reconcile.Result{RequeueAfter: wait.Jitter(missingRecheck/2, 1)}, nil
	}
	return reconcile.Result{}, err
}

func (s *Source) inScope(cluster client.Object) bool {
	return s.options.WatchFilter == "" || cluster.GetLabels()[watchLabel] == s.options.WatchFilter
}
