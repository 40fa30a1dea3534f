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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleet"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// reconcileTimeout bounds one pass over a cluster. A pass that is cut off goes
// on where it stopped: the records say where.
const reconcileTimeout = 3 * time.Minute

// Reconciler reconciles ClusterAddons.
type Reconciler struct {
	// Client reads from the management cluster's cache, and writes.
	Client client.Client
	// APIReader reads from the management cluster directly.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Fleet     *fleet.Provider
	Sources   *source.Sources
	Renderer  *render.Renderer
	Deliverer *deliver.Deliverer
	// Queue starts reconciles from events outside of the management cluster.
	Queue *Queue
	Clock clock.PassiveClock
	// PathChanged is told of changes under the artifact root, too; it may be nil.
	PathChanged func(ctx context.Context, path string)

	records   *recordWatch
	kinds     *kindWatch
	objects   *objectReader
	provider  *providerObjects
	templates *templateCache
	users     *references
	waits     *waits
	lags      *lags
	lanes     *lanes
	// reinstalls are of add-ons whose records don't stay.
	reinstalls *reinstalls
	contents   *lru.Cache[string, sets.Set[deliver.ObjectKey]] // see contentsOf
	statuses   management.Statuses
	told       sync.Map // client.ObjectKey to the ClusterAddonStatus that events were last about
}

// Reconcile takes one cluster as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (result ctrl.Result, reterr error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()

	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, req.NamespacedName, ca); err != nil {
		if err = client.IgnoreNotFound(err); err == nil {
			r.users.forget(req.NamespacedName)
			r.waits.forget(req.NamespacedName)
			r.lags.forget(req.NamespacedName)
			r.lanes.forget(req.NamespacedName)
			r.reinstalls.forget(req.NamespacedName)
			r.Deliverer.Forget(req.NamespacedName.String())
			r.told.Delete(req.NamespacedName)
			r.statuses.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if r.statuses.Stale(ca) {
		return ctrl.Result{RequeueAfter: management.StaleDelay}, nil
	}
	cluster, err := r.clusterOf(ctx, ca)
	if err != nil {
		return ctrl.Result{}, err
	}

	before := ca.DeepCopy()
	pass := &pass{Reconciler: r, ca: ca, cluster: cluster, stored: before}
	defer func() {
		summarize(ca)
		r.recordEvents(ctx, before, ca)
		retry, err := management.Retry(ctx, result, r.statuses.Patch(ctx, pass.stored, ca))
		result, reterr = retry, errors.Join(reterr, err)
	}()

	if blocked := gate(ca, cluster); blocked {
		ca.Status.ObservedGeneration = ca.Generation
		return ctrl.Result{}, nil
	}
	workload, ok := r.reach(ca)
	if !ok {
		return ctrl.Result{}, nil
	}
	pass.workload = workload
	return pass.deliver(ctx)
}

// deliver compares what the cluster is to run with what it runs, and acts on
// the difference.
func (p *pass) deliver(ctx context.Context) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(p.ca)
	ctx = p.Sources.Waiting(ctx, "ClusterAddon "+key.String(), func() { p.Queue.Add(key) })
	ctx, leave, ok := p.lanes.enter(ctx, key)
	if !ok {
		return ctrl.Result{RequeueAfter: laneRetry}, nil
	}
	defer func() { leave(p.silent) }()
	ctx, cancel := p.workload.whileConnected(render.WithTenant(ctx, key.Namespace, key.Name))
	defer cancel()
	wanted, err := p.wanted(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !p.readRecords() {
		if err := p.records.failure(p.workload.name); err != nil || !conditions.Has(p.ca, addonsv1.AddonsReadyCondition) {
			conditions.Set(p.ca, recordsUnread(err))
		}
		return ctrl.Result{}, nil // once they are known, the record watch starts the next pass
	}
	p.findUnwanted(wanted)
	if err := p.announce(ctx, wanted); err != nil {
		return ctrl.Result{}, err
	}
	p.ensureAll(ctx, wanted)
	p.removeLeaving(ctx)
	p.users.replace(key, p.used)

	if !p.silent { // else some add-ons weren't looked at
		p.ca.Status.ObservedGeneration = p.ca.Generation
	}
	report(p.ca, p.statuses, p.heldRemovals, p.openQuestions())
	if err := p.records.failure(p.workload.name); isLasting(err) {
		conditions.Set(p.ca, recordsUnread(err)) // what was read before may not be so any more
	}
	return p.result()
}
