// SPDX-License-Identifier: Apache-2.0

// Package assignment makes one ClusterAddon for each cluster, with the stacks that it is to run.
package assignment

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Reconciler assigns AddonStacks to clusters.
type Reconciler struct {
	Client client.Client
	// APIReader reads what may be outside of the scope of the cache.
	APIReader client.Reader
	Members   *member.Inventory
	Recorder  events.EventRecorder
	// Discovery tells whether the CRDs of the AddonStacks are there.
	Discovery Discovery
	Clock     clock.Clock

	// Turns are given by the rollouts of AddonStacks.
	Turns *management.Turns

	queue         management.Queue
	stacks        snapshots
	removals      removals
	absences      absences
	confirmations confirmations
}

// Reconcile brings one ClusterAddon up to date. A paused cluster keeps its assignment, but for the policies of stacks. The
// ClusterAddon of a deleted one is deleted with its owner.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	ca := &addonsv1.ClusterAddon{} // without a name while there is none
	if err := r.Client.Get(ctx, req.NamespacedName, ca); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	cluster, err := r.Members.Get(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case cluster == nil:
		return r.withoutCluster(ctx, ca)
	case cluster.Deleting:
		return ctrl.Result{}, nil
	case ca.Name != "" && !equality.Semantic.DeepEqual(ca.Spec.ClusterRef, cluster.Reference()):
		r.nameTaken(ca, cluster)
		return ctrl.Result{}, nil
	case ca.Name == "" && cluster.Paused:
		// clusterctl takes ClusterAddons away from, and brings them to, paused
		// Clusters: one that is made meanwhile would be in its way.
		return management.Retry(ctx, ctrl.Result{}, r.takeOver(ctx, cluster))
	}
	stacks, soon, err := r.candidates(ctx, cluster.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.absences.present(cluster.Namespace, stacks)
	stored := ca
	if ca = r.asWritten(stored, stacks); ca.Name != "" && isPaused(cluster, ca) { // nothing else changes
		return management.Retry(ctx, ctrl.Result{}, r.patch(ctx, stored, ca, cluster))
	}
	stay, again, err := r.absent(ctx, ca, stacks)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{RequeueAfter: soon}
	if again {
		result.RequeueAfter = retry.Sooner(soon, retry.Moment)
	}
	p := &plan{cluster: cluster, ca: ca, stored: stored, candidates: stacks, wanted: append(assign(cluster, stacks, ca), stay...)}
	if err := r.hold(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	result.RequeueAfter = retry.Sooner(result.RequeueAfter, p.again)
	if isUnreported(ca, r.Clock.Now()) {
		result.RequeueAfter = retry.Sooner(result.RequeueAfter, firstReport)
	}
	return management.Retry(ctx, result, r.write(ctx, p))
}

func isPaused(cluster *member.Member, ca *addonsv1.ClusterAddon) bool {
	return cluster.Paused || annotations.HasPaused(ca)
}

// write makes or patches the ClusterAddon, if it isn't as planned.
func (r *Reconciler) write(ctx context.Context, p *plan) error {
	cluster, existing := p.cluster, p.stored
	stacks, left := limited(p.wanted, existing.Spec.Stacks)
	if existing.Name == "" {
		return r.create(ctx, cluster, stacks)
	}
	if !existing.DeletionTimestamp.IsZero() {
		return nil // its end is an event, and the next one is made then
	}
	wanted := existing.DeepCopy()
	shape(wanted, cluster, stacks)
	noteRemovals(wanted, p.removed, r.Clock.Now())
	delete(wanted.Annotations, addonsv1.ConfirmRemovalAnnotation)
	if equality.Semantic.DeepEqual(wanted, existing) {
		return nil
	}
	if len(left) > 0 {
		r.Recorder.Eventf(wanted, cluster.Object(), corev1.EventTypeWarning, addonsv1.TooManyStacksReason, "Assign",
			"More than the %d AddonStacks that a cluster can run select %s. Left out: %s", stack.MaxOfCluster, cluster, message.FirstFew(left))
	}
	r.tellHeld(existing, wanted, cluster)
	return r.patch(ctx, existing, wanted, cluster)
}

// patch writes what differs of a ClusterAddon, if anything does.
func (r *Reconciler) patch(ctx context.Context, before, wanted *addonsv1.ClusterAddon, cluster *member.Member) error {
	if equality.Semantic.DeepEqual(wanted, before) {
		return nil
	}
	patch, err := management.Changes(before, wanted)
	if err != nil {
		return err
	}
	return wrap(r.Client.Patch(ctx, wanted, patch), "writing the ClusterAddon of %s", cluster)
}

// create makes the ClusterAddon.
func (r *Reconciler) create(ctx context.Context, cluster *member.Member, stacks []addonsv1.StackRevision) error {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ClusterAddon().Name}}
	shape(ca, cluster, stacks)
	err := r.Client.Create(ctx, ca)
	if err == nil {
		r.Recorder.Eventf(ca, cluster.Object(), corev1.EventTypeNormal, "ClusterAddonCreated", "Assign", "Created for %s", cluster)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the ClusterAddon of %s: %w", cluster, err)
	}
	return r.takeOver(ctx, cluster)
}

// takeOver takes over a ClusterAddon whose Cluster has come into the scope by relabelling.
func (r *Reconciler) takeOver(ctx context.Context, cluster *member.Member) error {
	ca := &addonsv1.ClusterAddon{}
	if err := r.APIReader.Get(ctx, cluster.ClusterAddon(), ca); err != nil {
		return wrap(err, "reading the ClusterAddon of %s", cluster)
	}
	if !equality.Semantic.DeepEqual(ca.Spec.ClusterRef, cluster.Reference()) {
		r.nameTaken(ca, cluster)
		return nil
	}
	if ca.Labels[clusterv1.WatchLabel] == cluster.Labels[clusterv1.WatchLabel] {
		return nil // the cache is behind; when it shows the object, that is an event
	}
	before := ca.DeepCopy()
	shape(ca, cluster, ca.Spec.Stacks) // the stacks follow once the cache shows it
	patch, err := management.Changes(before, ca)
	if err != nil {
		return err
	}
	return wrap(r.Client.Patch(ctx, ca, patch), "taking over the ClusterAddon of %s", cluster)
}

// wrap returns the error with the action that failed. An object that is gone is no failure: its end
// is an event.
func wrap(err error, format string, args ...any) error {
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// shape sets what this controller owns of a ClusterAddon.
func shape(ca *addonsv1.ClusterAddon, cluster *member.Member, stacks []addonsv1.StackRevision) {
	if ca.Labels == nil {
		ca.Labels = map[string]string{}
	}
	if cluster.Cluster != nil { // clusterctl moves what carries it with the Cluster
		ca.Labels[clusterv1.ClusterNameLabel] = cluster.Name
	}
	if filter, ok := cluster.Labels[clusterv1.WatchLabel]; ok {
		ca.Labels[clusterv1.WatchLabel] = filter
	} else {
		delete(ca.Labels, clusterv1.WatchLabel)
	}
	if cluster.Owner != nil {
		ca.OwnerReferences = util.EnsureOwnerRef(ca.OwnerReferences, *cluster.Owner)
	}
	labelStacks(ca, stacks)
	ca.Spec.ClusterName, ca.Spec.ClusterRef = cluster.Name, cluster.Reference()
	ca.Spec.Stacks = stacks
}

// labelStacks sets a label for each of the stacks.
func labelStacks(ca *addonsv1.ClusterAddon, stacks []addonsv1.StackRevision) {
	maps.DeleteFunc(ca.Labels, func(key, _ string) bool { return strings.HasPrefix(key, addonsv1.AssignedStackLabelPrefix) })
	for _, s := range stacks {
		if key := addonsv1.AssignedStackLabelPrefix + s.Name; len(content.IsLabelKey(key)) == 0 { // else no AddonStack has the name
			ca.Labels[key] = ""
		}
	}
}
