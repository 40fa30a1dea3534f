// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	r.Statuses.Client, r.Statuses.Clock = r.Client, r.Clock
	r.Running = budget.New(Running)
	all := r.plansOf(func(*addonsv1.AddonPlan, client.Object) bool { return true })
	ofStack := r.plansOf(func(p *addonsv1.AddonPlan, s client.Object) bool { return p.Spec.StackName == s.GetName() })
	ofRevision := r.plansOf(func(p *addonsv1.AddonPlan, is client.Object) bool {
		return p.Spec.StackName == is.GetLabels()[addonsv1.StackNameLabel]
	})
	ofValues := r.plansOf(func(p *addonsv1.AddonPlan, _ client.Object) bool { return p.Spec.Template != nil }) // revisions say so themselves
	r.Members.Subscribe(func(clusterAddon client.ObjectKey) {
		for _, key := range all(context.Background(), &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: clusterAddon.Namespace}}) {
			r.wake.Add(key)
		}
	})
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

// plansOf enqueues the plans of an object's namespace that are so: something may be another way for them now.
func (r *Reconciler) plansOf(isOne func(*addonsv1.AddonPlan, client.Object) bool) func(context.Context, client.Object) []client.ObjectKey {
	return func(ctx context.Context, o client.Object) (keys []client.ObjectKey) {
		plans := &addonsv1.AddonPlanList{}
		if err := r.Client.List(ctx, plans, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil { // they are only read
			return nil // the cache is synced before events are handed on
		}
		for i := range plans.Items {
			if isOne(&plans.Items[i], o) {
				keys = append(keys, client.ObjectKeyFromObject(&plans.Items[i]))
			}
		}
		return keys
	}
}
