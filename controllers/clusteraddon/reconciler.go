// SPDX-License-Identifier: Apache-2.0

// Package clusteraddon brings the add-ons of one workload cluster to what its
// ClusterAddon says: it installs, upgrades and removes them, and tells in the
// status how far it got.
//
// A reconcile never waits. It does what can be done now, and returns; an event
// (an object became ready, a connection was made, an input changed) starts the
// next one. What is installed is read from the release records in the workload
// cluster, never from the status.
package clusteraddon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/shares"
	"github.com/cluster-chandler/chandler/internal/source"
)

// reconcileTimeout bounds one reconcile. The next one goes on by the records.
const reconcileTimeout = 3 * time.Minute

// Reconciler reconciles ClusterAddons.
type Reconciler struct {
	// Client reads from the management cluster's cache, and writes.
	Client client.Client
	// APIReader reads from the management cluster directly.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Members   *member.Inventory
	Fleet     *fleet.Provider
	Sources   *source.Sources
	Renderer  *render.Renderer
	Deliverer *deliver.Deliverer
	// Queue starts reconciles from events outside of the management cluster.
	Queue *Queue
	Clock clock.PassiveClock
	// RequireImpersonation uses the rights of Clusters' kubeconfigs for records alone.
	RequireImpersonation bool

	records   installedReleases
	kinds     *fleetwatch.Kinds
	watched   *fleetwatch.Objects
	objects   *objectReader
	provider  *providerObjects
	templates *lru.Cache[string, []byte] // values in JSON that templates made, by their input
	users     references
	lanes     *lanes
	contents  *lru.Cache[string, sets.Set[deliver.ObjectKey]] // see contentsOf
	statuses  management.Statuses
	memories  sync.Map // client.ObjectKey to *memory
}

// installedReleases know what is installed on each cluster, or why that isn't known.
type installedReleases interface {
	// Of returns the newest record of each release; false while they aren't known.
	Of(cluster multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool)
	Failure(cluster multicluster.ClusterName) error
}

// Reconcile takes one cluster as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (result ctrl.Result, reterr error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()

	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, req.NamespacedName, ca); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if r.statuses.Stale(ca) {
		return ctrl.Result{RequeueAfter: management.StaleDelay}, nil
	}
	cluster, err := r.Members.Of(ctx, ca)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ref := ca.Spec.ClusterRef; cluster == nil && ref != nil && r.Members.IsUnsettled(ref.Kind) {
		return ctrl.Result{RequeueAfter: member.SettleRetry}, nil // as after each restart: nothing says that it is otherwise now
	}

	before, stored := ca.DeepCopy(), ca.DeepCopy()
	defer func() {
		summarize(ca)
		r.recordEvents(before, ca)
		retry, err := management.Retry(ctx, result, r.statuses.Patch(ctx, stored, ca))
		result, reterr = retry, errors.Join(reterr, err)
	}()

	blocked, removes := gate(ca, cluster), removesBeforeDeletion(ca, cluster)
	if blocked && !removes {
		if moves(cluster) {
			ca.Status.Deletion = nil
		}
		ca.Status.ObservedGeneration = ca.Generation
		return ctrl.Result{}, nil
	}
	workload, ok := r.reach(ca)
	switch {
	case !ok && removes:
		return deletionUnseen(ca, r.Clock.Now()), nil
	case !ok:
		return ctrl.Result{RequeueAfter: r.upgradeUnseen(ca, cluster)}, nil
	}
	return r.deliver(ctx, &request{
		Reconciler: r, ca: ca, stored: stored, cluster: cluster, workload: workload, removes: removes,
		memory: r.memoryOf(req.NamespacedName), now: r.Clock.Now(),
	})
}

// deliver compares what the cluster is to run with what it runs, and acts on that.
func (r *Reconciler) deliver(ctx context.Context, q *request) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(q.ca)
	ctx = r.Sources.Waiting(ctx, "ClusterAddon "+key.String(), func() { r.Queue.Add(key) })
	ctx, leave, ok := r.lanes.enter(ctx, key)
	if !ok {
		return ctrl.Result{RequeueAfter: laneRetry}, nil
	}
	var all result
	defer func() { leave(all.unreachable) }()
	ctx, cancel := q.workload.whileConnected(shares.WithTenant(ctx, key.Namespace, key.Name))
	defer cancel()
	if !q.isSame(ctx) {
		if q.removes {
			return deletionUnseen(q.ca, q.now), nil
		}
		return ctrl.Result{RequeueAfter: q.upgradeUnseen(q.ca, q.cluster)}, nil
	}
	known, err := q.read(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !known && q.removes {
		return deletionUnseen(q.ca, q.now), nil
	}
	if !known {
		q.upgradeUnseen(q.ca, q.cluster)
		if err := r.records.Failure(q.workload.name); err != nil || !conditions.Has(q.ca, addonsv1.AddonsReadyCondition) {
			conditions.Set(q.ca, recordsUnread(err))
		}
		return ctrl.Result{}, nil // once they are known, the record watch starts the next reconcile
	}
	if q.removes {
		return q.removeBeforeDeletion(ctx)
	}
	if err := q.announce(ctx); err != nil {
		return management.Retry(ctx, ctrl.Result{}, err)
	}
	q.again = isAskedAgain(q.ca)
	q.followObjects()
	untold := q.tellOrphans(ctx)
	var successors []*addon
	all, successors = q.ensureAll(ctx)
	q.removeLeaving(ctx, successors, &all)
	return q.finish(all, untold)
}

// isAskedAgain reports whether somebody asks to try at once what failed.
func isAskedAgain(ca *addonsv1.ClusterAddon) bool {
	return askedFor(ca) != "" && askedFor(ca) != ca.Status.LastReconcileNow
}

// askedFor returns what status.lastReconcileNow is to be.
func askedFor(ca *addonsv1.ClusterAddon) string {
	value := ca.Annotations[addonsv1.ReconcileNowAnnotation]
	return value[:min(len(value), 256)]
}

// finish writes the result into the status, and returns when to come back. A failure is
// tried again with backoff, and that must not make others wait that know their time. untold is why a record
// doesn't say yet that its add-on is left behind.
func (q *request) finish(all result, untold error) (ctrl.Result, error) {
	all.err = errors.Join(all.err, untold)
	isWhole := !all.unreachable && untold == nil // else some add-ons weren't looked at
	if isWhole {
		q.ca.Status.ObservedGeneration = q.ca.Generation
		q.ca.Status.LastReconcileNow = askedFor(q.ca)
	}
	q.ca.Status.KubernetesVersions = q.kubernetesVersions()
	q.reportDeletable()
	held := q.reportUpgrade(all.statuses)
	report(q.ca, slices.Concat(q.kept, all.statuses), q.heldRemovals, q.openQuestions())
	noteSince(&q.stored.Status, &q.ca.Status, q.now)
	if isWhole {
		q.ca.Status.Stacks = stackStates(&q.stored.Status, &q.ca.Status, q.ca.Spec.Stacks, q.unresolved, q.now)
	}
	q.reportProofs()
	if err := q.records.Failure(q.workload.name); fleetwatch.IsLasting(err) {
		conditions.Set(q.ca, recordsUnread(err)) // what was read before may not be so any more
	}
	retryAfter := management.Sooner(held, management.Sooner(q.recheckAfter, all.retryAfter))
	if all.err == nil {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	if retryAfter > 0 {
		q.Queue.AddAfter(client.ObjectKeyFromObject(q.ca), retryAfter)
	}
	return ctrl.Result{}, all.err
}
