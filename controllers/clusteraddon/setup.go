// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/hub"
)

// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusteraddons/status,verbs=get;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io;infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr mcmanager.Manager, workers int) error {
	local := mgr.GetLocalManager()
	r.users = newReferences()
	r.records = newRecordWatch(r.Queue)
	r.objects = newObjectReader(local.GetCache(), r.APIReader)
	r.provider = newProviderObjects(local, r.users, r.Queue)
	r.templates = newTemplateCache()
	if err := mgr.Add(r.records); err != nil {
		return err
	}
	if err := local.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return r.Sources.Watch(ctx, r.pathChanged)
	})); err != nil {
		return err
	}
	r.Fleet.Subscribe(r.Queue.AddCluster)

	return hub.NewController(mgr, "clusteraddon", "ClusterAddon", workers).
		For(&addonsv1.ClusterAddon{}, hub.Only(), hub.OnlyHere(), hub.SpecChanged()).
		Watches(&clusterv1.Cluster{}, hub.Map(clusterAddonOf), hub.Only(), hub.OnlyHere()).
		WatchesMetadata(&corev1.Secret{}, hub.Map(r.usersOf("Secret")), hub.Only(), hub.OnlyHere()).
		WatchesMetadata(&corev1.ConfigMap{}, hub.Map(r.usersOf("ConfigMap")), hub.Only(), hub.OnlyHere()).
		WatchesRawSource(r.Queue).
		Complete(r)
}

func clusterAddonOf(_ context.Context, obj client.Object) []client.ObjectKey {
	return []client.ObjectKey{client.ObjectKeyFromObject(obj)}
}

// usersOf maps a ConfigMap or Secret to the ClusterAddons that take input from it.
func (r *Reconciler) usersOf(kind string) func(context.Context, client.Object) []client.ObjectKey {
	return func(_ context.Context, obj client.Object) []client.ObjectKey {
		return r.users.of(object{kind: kind, key: client.ObjectKeyFromObject(obj)})
	}
}

// pathChanged enqueues the ClusterAddons whose charts are at a path of the
// artifact root.
func (r *Reconciler) pathChanged(path string) {
	for _, user := range r.users.of(object{kind: kindPath, key: client.ObjectKey{Name: path}}) {
		r.Queue.Add(user)
	}
}
