// SPDX-License-Identifier: Apache-2.0

// Package assignment makes one ClusterAddon for each Cluster, and writes into
// it which revision of which AddonStack the cluster is to run.
package assignment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
)

// Reconciler assigns AddonStacks to Clusters.
type Reconciler struct {
	Client client.Client
	// APIReader reads what may be outside of the scope of the cache.
	APIReader client.Reader
	Recorder  events.EventRecorder
	// Discovery tells whether the CRDs of the AddonStacks are there.
	Discovery Discovery
	Clock     clock.PassiveClock

	removals removals
	absences absences
}

// Reconcile brings the ClusterAddon of one Cluster up to date. A paused Cluster
// keeps the assignment it has; the ClusterAddon of a deleted one goes with its
// owner.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	existing, err := r.existing(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case existing != nil && annotations.IsPaused(cluster, existing):
		return ctrl.Result{}, nil
	case existing == nil && ptr.Deref(cluster.Spec.Paused, false):
		// clusterctl takes ClusterAddons away from, and brings them to, paused
		// Clusters: one that is made meanwhile would be in its way.
		return management.Retry(ctx, ctrl.Result{}, r.takeOver(ctx, cluster))
	}
	stacks, err := r.candidates(ctx, cluster.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	var assigned []addonsv1.StackRevision
	if existing != nil {
		assigned = existing.Spec.Stacks
	}
	stay, again, err := r.absent(ctx, cluster.Namespace, assigned, stacks)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := append(assign(cluster, stacks, assigned), stay...)
	if existing != nil {
		if wanted, err = r.hold(ctx, &plan{cluster: cluster, ca: existing, candidates: stacks, wanted: wanted}); err != nil {
			return ctrl.Result{}, err
		}
	}
	var result ctrl.Result
	if again {
		result.RequeueAfter = absenceRetry
	}
	wanted, left := limited(wanted, assigned)
	return management.Retry(ctx, result, r.write(ctx, cluster, existing, wanted, left))
}

func (r *Reconciler) existing(ctx context.Context, cluster *clusterv1.Cluster) (*addonsv1.ClusterAddon, error) {
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(cluster), ca); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return ca, nil
}

// write makes or patches the ClusterAddon, if it isn't as wanted.
func (r *Reconciler) write(ctx context.Context, cluster *clusterv1.Cluster, existing *addonsv1.ClusterAddon, stacks []addonsv1.StackRevision, left int) error {
	if existing == nil {
		return r.create(ctx, cluster, stacks)
	}
	if !existing.DeletionTimestamp.IsZero() {
		return nil // its end is an event, and the next one is made then
	}
	wanted := existing.DeepCopy()
	shape(wanted, cluster, stacks)
	confirmation, confirming := existing.Annotations[addonsv1.ConfirmRemovalAnnotation]
	delete(wanted.Annotations, addonsv1.ConfirmRemovalAnnotation)
	if equality.Semantic.DeepEqual(wanted, existing) {
		return nil
	}
	if left > 0 {
		r.Recorder.Eventf(wanted, cluster, corev1.EventTypeWarning, "TooManyStacks", "Assign",
			"%d AddonStacks more than the %d that a cluster can run select Cluster %s; they are left out", left, maxStacks, cluster.Name)
	}
	// Nobody else writes the spec, and the status is written often: no lock, unless
	// somebody may write another confirmation in this moment.
	changes := management.Changes
	if confirming {
		changes = management.ChangesLocked
	}
	patch, err := changes(existing, wanted)
	if err != nil {
		return err
	}
	r.tellHeld(existing, wanted, cluster, confirmation)
	return wrap(r.Client.Patch(ctx, wanted, patch), "writing the ClusterAddon of Cluster %s", cluster.Name)
}

// create makes the ClusterAddon.
func (r *Reconciler) create(ctx context.Context, cluster *clusterv1.Cluster, stacks []addonsv1.StackRevision) error {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	shape(ca, cluster, stacks)
	err := r.Client.Create(ctx, ca)
	if err == nil {
		r.Recorder.Eventf(ca, cluster, corev1.EventTypeNormal, "ClusterAddonCreated", "Assign", "Created for Cluster %s", cluster.Name)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the ClusterAddon of Cluster %s: %w", cluster.Name, err)
	}
	return r.takeOver(ctx, cluster)
}

// takeOver takes over a ClusterAddon that is there, unseen by the cache: its Cluster
// has come into the scope of this instance by relabelling.
func (r *Reconciler) takeOver(ctx context.Context, cluster *clusterv1.Cluster) error {
	ca := &addonsv1.ClusterAddon{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(cluster), ca); err != nil {
		return wrap(err, "reading the ClusterAddon of Cluster %s", cluster.Name)
	}
	if ca.Labels[clusterv1.WatchLabel] == cluster.Labels[clusterv1.WatchLabel] {
		return nil // the cache is behind; when it shows the object, that is an event
	}
	before := ca.DeepCopy()
	shape(ca, cluster, ca.Spec.Stacks) // the stacks follow once the cache shows it
	patch, err := management.ChangesLocked(before, ca)
	if err != nil {
		return err
	}
	return wrap(r.Client.Patch(ctx, ca, patch), "taking over the ClusterAddon of Cluster %s", cluster.Name)
}

// wrap says what failed. That the object is gone is no failure: its end is an event.
func wrap(err error, format string, args ...any) error {
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// shape sets what this controller owns of a ClusterAddon.
func shape(ca *addonsv1.ClusterAddon, cluster *clusterv1.Cluster, stacks []addonsv1.StackRevision) {
	if ca.Labels == nil {
		ca.Labels = map[string]string{}
	}
	ca.Labels[clusterv1.ClusterNameLabel] = cluster.Name
	if filter, ok := cluster.Labels[clusterv1.WatchLabel]; ok {
		ca.Labels[clusterv1.WatchLabel] = filter
	} else {
		delete(ca.Labels, clusterv1.WatchLabel)
	}
	ca.OwnerReferences = util.EnsureOwnerRef(ca.OwnerReferences, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	})
	ca.Spec.ClusterName = cluster.Name
	ca.Spec.Stacks = stacks
}
