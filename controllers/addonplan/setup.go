// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
)

// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonplans,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonplans/status,verbs=patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonstacks;clusteraddons,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager. Plans that wait or are finished need workers, too.
func (r *Reconciler) SetupWithManager(mgr mcmanager.Manager) error {
	r.Statuses.Client = r.Client
	r.Running = budget.New(Running)
	r.Members.Subscribe(func(clusterAddon client.ObjectKey) {
		for _, key := range r.plansOf(context.Background(), clusterAddon.Namespace, func(*addonsv1.AddonPlan) bool { return true }) {
			r.wake.Add(key)
		}
	})
	inNamespace := func(isOf func(*addonsv1.AddonPlan, client.Object) bool) func(context.Context, client.Object) []client.ObjectKey {
		return func(ctx context.Context, obj client.Object) []client.ObjectKey {
			return r.plansOf(ctx, obj.GetNamespace(), func(p *addonsv1.AddonPlan) bool { return isOf(p, obj) })
		}
	}
	ofStack := inNamespace(func(p *addonsv1.AddonPlan, s client.Object) bool { return p.Spec.StackName == s.GetName() })
	ofRevision := inNamespace(func(p *addonsv1.AddonPlan, is client.Object) bool {
		return p.Spec.StackName == is.GetLabels()[addonsv1.StackNameLabel]
	})
	ofValues := inNamespace(func(p *addonsv1.AddonPlan, _ client.Object) bool { return p.Spec.Template != nil }) // revisions say so themselves
	all := inNamespace(func(*addonsv1.AddonPlan, client.Object) bool { return true })
	return management.NewController(mgr, "addonplan", "AddonPlan", int(Running.All)+2).
		For(&addonsv1.AddonPlan{}, management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		Watches(&addonsv1.AddonStack{}, management.Map(ofStack), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged(management.Updated(isObserved))).
		Watches(&appsv1.ControllerRevision{}, management.Map(ofRevision), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		Watches(&clusterv1.Cluster{}, management.Map(all), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		WatchesMetadata(&corev1.ConfigMap{}, management.Map(ofValues), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesMetadata(&corev1.Secret{}, management.Map(ofValues), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesRawSource(&r.wake).
		Complete(r)
}

// isObserved passes when an edit of a stack was seen.
func isObserved(before, after *addonsv1.AddonStack) bool {
	return before.Status.ObservedGeneration != after.Status.ObservedGeneration
}

// plansOf returns the plans of a namespace that are so: something may be another way for them now.
func (r *Reconciler) plansOf(ctx context.Context, namespace string, isOne func(*addonsv1.AddonPlan) bool) (keys []client.ObjectKey) {
	plans := &addonsv1.AddonPlanList{}
	if err := r.Client.List(ctx, plans, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil // the cache is synced before events are handed on
	}
	for i := range plans.Items {
		if isOne(&plans.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&plans.Items[i]))
		}
	}
	return keys
}
