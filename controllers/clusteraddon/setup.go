// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/lanes"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
)

// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons,verbs=get;list;watch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io;infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr mcmanager.Manager, workers int) error {
	local := mgr.GetLocalManager()
	owner := func(name multicluster.ClusterName) string {
		key, _ := r.Members.Names.ClusterAddon(name) // one that has none is asked about by nobody
		return key.String()
	}
	records := fleetwatch.NewRecords(owner, r.proofsOf, r.Queue.AddCluster, func(name multicluster.ClusterName) { r.Deliverer.Forget(name.String()) })
	r.records, r.kinds = records, fleetwatch.NewKinds(r.Queue.AddCluster)
	r.watched = fleetwatch.NewObjects(r.Queue.AddCluster)
	r.provider = management.NewObjects(local, func(kind schema.GroupKind, key client.ObjectKey) {
		r.enqueueUsers(inputs.Object{Kind: kind.String(), Key: key})
	})
	r.contents = removal.NewContents(r.Memory)
	r.lanes, r.beside = lanes.New(workers, clock.RealClock{}), delivery.NewBeside(workers, r.Memory)
	if err := mgr.Add(records); err != nil {
		return err
	}
	r.statuses.Client, r.statuses.Clock = r.Client, r.Clock
	r.Fleet.Subscribe(r.Queue.AddCluster)

	return management.NewController(mgr, "clusteraddon", "ClusterAddon", workers).
		For(&addonsv1.ClusterAddon{}, management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		Watches(&clusterv1.Cluster{}, management.Map(management.SameName), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		Watches(&appsv1.ControllerRevision{}, management.Map(r.usersOf(inputs.KindRevision)), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesMetadata(&corev1.Secret{}, management.Map(r.valuesOf("Secret")), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesMetadata(&corev1.ConfigMap{}, management.Map(r.valuesOf("ConfigMap")), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		Watches(&addonsv1.AddonStack{}, management.Map(r.usersOf(inputs.KindStack)), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		Watches(&addonsv1.AddonStack{}, management.Map(r.inputTurns.Waiting), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		WatchesRawSource(r.Queue).
		Complete(r)
}

// valuesOf drops what is kept of an object of a kind, which may be gone, and maps it to the ClusterAddons that take values from it.
func (r *Reconciler) valuesOf(kind string) func(context.Context, client.Object) []client.ObjectKey {
	users := r.usersOf(kind)
	return func(ctx context.Context, obj client.Object) []client.ObjectKey {
		r.Values.Forget(kind, client.ObjectKeyFromObject(obj))
		return users(ctx, obj)
	}
}

// usersOf maps an object of a kind to the ClusterAddons that take input from it.
func (r *Reconciler) usersOf(kind string) func(context.Context, client.Object) []client.ObjectKey {
	return func(_ context.Context, obj client.Object) []client.ObjectKey {
		return r.users.Of(inputs.Object{Kind: kind, Key: client.ObjectKeyFromObject(obj)})
	}
}

// PathChanged enqueues the ClusterAddons whose charts are at a path of the artifact root.
func (r *Reconciler) PathChanged(changed string) {
	r.enqueueUsers(inputs.Object{Kind: inputs.KindPath, Key: client.ObjectKey{Name: changed}})
}

// enqueueUsers enqueues the ClusterAddons that take input from an object.
func (r *Reconciler) enqueueUsers(o inputs.Object) {
	for _, user := range r.users.Of(o) {
		r.Queue.Add(user)
	}
}
