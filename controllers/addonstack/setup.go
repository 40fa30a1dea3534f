// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"path"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/gauges"
	"github.com/cluster-chandler/chandler/controllers/addonstack/rollouts"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonstacks,verbs=get;list;watch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonstacks/status,verbs=patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonstacks/finalizers,verbs=update
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=addonplans,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr mcmanager.Manager, workers int) error {
	r.Statuses.Client, r.Statuses.Clock = r.Client, r.Clock
	r.Members.Subscribe(r.memberChanged)
	if err := metrics.Registry.Register(gauges.Series{Cache: r.Client}); err != nil {
		return err
	}
	if err := rollouts.IndexPlans(context.Background(), mgr.GetLocalManager().GetFieldIndexer()); err != nil {
		return err
	}
	r.Sources.Flux = management.NewObjects(mgr.GetLocalManager(), r.fluxChanged)
	return management.NewController(mgr, "addonstack", "AddonStack", workers).
		For(&addonsv1.AddonStack{}, management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged(management.Updated(haveInstancesMoved))).
		Watches(&appsv1.ControllerRevision{}, management.Map(stackOfRevision), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		Watches(&addonsv1.ClusterAddon{}, management.Map(r.stacksOfClusterAddon), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		Watches(&addonsv1.AddonPlan{}, management.Map(stackOfPlan), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged(management.Updated(isPlanned))).
		Watches(&clusterv1.Cluster{}, management.Map(r.stacksOfNamespace), management.WatchManagementCluster(), management.SkipWorkloadClusters(), management.SpecChanged()).
		WatchesMetadata(&corev1.ConfigMap{}, management.Map(r.stacksUsing("ConfigMap")), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesMetadata(&corev1.Secret{}, management.Map(r.stacksUsing("Secret")), management.WatchManagementCluster(), management.SkipWorkloadClusters()).
		WatchesRawSource(&r.wake).
		Complete(r)
}

// haveInstancesMoved passes when a rollout of several instances is further at one of them.
func haveInstancesMoved(before, after *addonsv1.AddonStack) bool {
	return !slices.EqualFunc(before.Status.Instances, after.Status.Instances, func(a, b addonsv1.StackInstance) bool {
		return a.WatchFilter == b.WatchFilter && equality.Semantic.DeepEqual(a.Rollout, b.Rollout)
	})
}

// stackOfRevision enqueues the stack that a revision is of. The cache has none without the label.
func stackOfRevision(_ context.Context, obj client.Object) []client.ObjectKey {
	return []client.ObjectKey{{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[addonsv1.StackNameLabel]}}
}

// stackOfPlan enqueues the stack that a plan is of: a wave that waits names it.
func stackOfPlan(_ context.Context, obj client.Object) []client.ObjectKey {
	p, ok := obj.(*addonsv1.AddonPlan)
	if !ok {
		return nil
	}
	return []client.ObjectKey{{Namespace: p.Namespace, Name: p.Spec.StackName}}
}

// isPlanned passes when a plan is done.
func isPlanned(before, after *addonsv1.AddonPlan) bool {
	return after.Status.Phase == addonsv1.PlanDone && before.Status.Phase != addonsv1.PlanDone
}

// stacksOfClusterAddon enqueues the stacks that a cluster is to run, those whose rollout may bring them to it, and those for
// which it has no room.
func (r *Reconciler) stacksOfClusterAddon(ctx context.Context, obj client.Object) []client.ObjectKey {
	ca, ok := obj.(*addonsv1.ClusterAddon)
	if !ok {
		return nil
	}
	isAssigned := func(name string) bool {
		return slices.ContainsFunc(ca.Spec.Stacks, func(of addonsv1.StackRevision) bool { return of.Name == name })
	}
	keys := r.stacksWith(ctx, ca.Namespace, func(s *addonsv1.AddonStack) bool {
		return s.Spec.Rollout != nil && !isAssigned(s.Name) || stack.IsLeftOut(ca, s.Name)
	})
	for i := range ca.Spec.Stacks {
		keys = append(keys, client.ObjectKey{Namespace: ca.Namespace, Name: ca.Spec.Stacks[i].Name})
	}
	return keys
}

// memberChanged starts a count when a cluster changes that isn't one of Cluster API.
func (r *Reconciler) memberChanged(clusterAddon client.ObjectKey) {
	for _, key := range r.stacksWith(context.Background(), clusterAddon.Namespace, nil) {
		r.wake.Add(key)
	}
}

// stacksOfNamespace enqueues every stack that may select a Cluster. Counting needs no request.
func (r *Reconciler) stacksOfNamespace(ctx context.Context, obj client.Object) []client.ObjectKey {
	return r.stacksWith(ctx, obj.GetNamespace(), nil)
}

// PathChanged enqueues the stacks whose bundle is at a path of the artifact root.
func (r *Reconciler) PathChanged(ctx context.Context, changed string) {
	for _, key := range r.stacksWith(ctx, "", func(s *addonsv1.AddonStack) bool {
		return s.Spec.Source != nil && s.Spec.Source.Path != "" && path.Clean(s.Spec.Source.Path) == changed
	}) {
		r.wake.Add(key)
	}
}

// fluxChanged enqueues the stacks whose sources name an object of Flux.
func (r *Reconciler) fluxChanged(kind schema.GroupKind, object client.ObjectKey) {
	for _, key := range r.stacksWith(context.Background(), object.Namespace, func(s *addonsv1.AddonStack) bool { return sources.Uses(s, kind.Kind, object.Name) }) {
		r.wake.Add(key)
	}
}

// stacksUsing enqueues the stacks whose sources name a ConfigMap or Secret.
func (r *Reconciler) stacksUsing(kind string) func(context.Context, client.Object) []client.ObjectKey {
	return func(ctx context.Context, obj client.Object) []client.ObjectKey {
		return r.stacksWith(ctx, obj.GetNamespace(), func(s *addonsv1.AddonStack) bool { return sources.Uses(s, kind, obj.GetName()) })
	}
}

// stacksWith returns the stacks of a namespace, or of all, that match; nil matches every stack.
func (r *Reconciler) stacksWith(ctx context.Context, namespace string, matches func(*addonsv1.AddonStack) bool) []client.ObjectKey {
	all := &addonsv1.AddonStackList{}
	if err := r.Client.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil // the cache is synced before events are handed on
	}
	var keys []client.ObjectKey
	for i := range all.Items {
		if matches == nil || matches(&all.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys
}
