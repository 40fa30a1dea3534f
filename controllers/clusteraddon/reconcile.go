// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/lanes"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/retry"
)

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
		return ctrl.Result{RequeueAfter: retry.Cache}, nil
	}
	cluster, err := r.Members.Of(ctx, ca)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ref := ca.Spec.ClusterRef; cluster == nil && ref != nil && r.Members.IsUnsettled(ref.Kind) {
		return ctrl.Result{RequeueAfter: retry.Moment}, nil // as after each restart: nothing says that it is otherwise now
	}

	before, stored, blocked := ca.DeepCopy(), ca.DeepCopy(), report.Gate(ca, cluster)
	defer func() {
		for _, next := range r.inputTurns.Settle(before, ca, blocked) {
			r.Queue.Add(next)
		}
		report.Summarize(ca)
		reported := &r.memoryOf(req.NamespacedName).reported
		report.Send(r.Recorder, ca, reported.Events(before, ca))
		if pause := r.statuses.Pause(req.NamespacedName); pause > 0 && reterr == nil && report.IsProgress(&stored.Status, &ca.Status) {
			result.RequeueAfter = retry.Sooner(result.RequeueAfter, pause)
			return
		}
		err := r.statuses.Patch(ctx, stored, ca)
		reported.Written(err)
		retry, err := management.Retry(ctx, result, err)
		result, reterr = retry, errors.Join(reterr, err)
	}()

	removes := report.RemovesBeforeDeletion(ca, cluster)
	if blocked && !removes {
		if report.Moves(cluster) {
			ca.Status.Deletion = nil
		}
		ca.Status.ObservedGeneration = ca.Generation
		return ctrl.Result{}, nil
	}
	name, known := r.Members.Names.Fleet(ca), r.memoryOf(req.NamespacedName)
	conn := workload.Reach(r.Fleet, ca, name)
	if conn == nil {
		return ctrl.Result{RequeueAfter: known.reported.Unseen(ca, cluster, removes, r.Clock.Now())}, nil
	}
	return r.withRoom(ctx, pass{
		ca: ca, stored: stored, cluster: cluster, removes: removes, memory: known, now: r.Clock.Now(),
		workload: workload.Cluster{Name: name, Conn: conn, Namespace: ca.Namespace},
	})
}

// withRoom takes a cluster that has a connection further, unless slow clusters have all the room.
func (r *Reconciler) withRoom(ctx context.Context, q pass) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(q.ca)
	ctx = r.Sources.Waiting(ctx, "ClusterAddon "+key.String(), func() { r.Queue.Add(key) })
	ctx, leave, ok := r.lanes.Enter(ctx, key)
	if !ok {
		return ctrl.Result{RequeueAfter: retry.Room}, nil
	}
	var all result.All
	ctx, waited := deliver.WithOneWait(ctx)
	defer func() { leave(all.Unreachable || waited()) }()
	ctx = render.WithPatience(budget.WithTenant(ctx, budget.Tenant{Namespace: key.Namespace, Cluster: key.Name}), render.Patience)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.workload.Conn.Context(), cancel)() // it ends with the connection, too
	if same, err := q.memory.identity.IsSame(ctx, r.Fleet, q.ca, q.workload); !same {
		after := q.memory.reported.Unseen(q.ca, q.cluster, q.removes, r.Clock.Now())
		if err != nil {
			after = 0 // the error has it tried again
		}
		return ctrl.Result{RequeueAfter: after}, err
	}
	_ = q.workload.Conn.Discover(ctx) // in time for a wait that ends with the lane; add-ons tell of an error
	yields := func() bool { return errors.Is(context.Cause(ctx), lanes.ErrYield) }
	if !yields() {
		next, err := r.converge(ctx, q, &all)
		if !yields() {
			return next, err
		}
	}
	return ctrl.Result{RequeueAfter: retry.Room}, nil
}

// converge compares what the cluster is to run with what it runs, and acts on that.
func (r *Reconciler) converge(ctx context.Context, q pass, all *result.All) (ctrl.Result, error) {
	proofs := &q.memory.proofs
	proofs.Restore(q.stored, q.ca.UID)
	seen, known, err := r.gather(q).Read(ctx, q.ca)
	if err != nil {
		return ctrl.Result{}, err
	}
	q.memory.outdatedSince = seen.OutdatedSince
	if !known { // once they are, the record watch starts the next reconcile
		if err := r.records.Failure(q.workload.Name); err != nil || !conditions.Has(q.ca, addonsv1.AddonsReadyCondition) {
			conditions.Set(q.ca, report.RecordsUnread(err))
		}
		return ctrl.Result{RequeueAfter: q.memory.reported.Unseen(q.ca, q.cluster, q.removes, r.Clock.Now())}, nil
	}
	unwanted := removal.Unwanted{Observed: &seen, Proofs: proofs, NeedsAccount: r.RequireImpersonation}
	says := report.Report{Observed: &seen, Stored: q.stored, Cluster: q.cluster, Memory: &q.memory.reported}
	defer func() {
		report.Count(all.Deeds)
		report.Send(r.Recorder, q.ca, all.Events)
	}()
	if q.removes {
		going, hold := removal.Going(&seen)
		alone := unwanted.Alone()
		leaving, kept := alone.BeforeDeletion(going)
		r.removal(q, alone, leaving, kept).Remove(ctx, nil, all)
		after := says.FinishDeletion(*all, kept, hold)
		proofs.Report(q.ca.Status.Addons)
		return ctrl.Result{RequeueAfter: after}, all.Err
	}

	leaving, kept := unwanted.Partition()
	q.memory.addons.Keep(&seen, releases.Names(leaving))
	if says.Announce(removal.NoteOrphans(&seen, proofs)) {
		proofs.Report(q.ca.Status.Addons) // those that a backup brought aren't of this ClusterAddon's records
		if err := r.statuses.Patch(ctx, q.stored, q.ca); err != nil {
			return management.Retry(ctx, ctrl.Result{}, err)
		}
		q.ca.DeepCopyInto(q.stored)
	}
	r.watched.Watch(q.workload.Name, q.workload.Conn, upkeep.Expected(seen.Wanted, seen.Installed))
	untold := removal.TellOrphans(ctx, &seen, releases.Terms{Deliverer: r.Deliverer, Target: q.workload.Target(), UID: q.ca.UID, Proofs: proofs})
	delivered, successors := r.delivery(q, &seen, releases.Names(leaving)).Ensure(ctx)
	*all = delivered
	r.removal(q, unwanted, leaving, kept).Remove(ctx, successors, all)
	all.Err = errors.Join(all.Err, untold)
	after := says.Finish(*all, kept, !all.Unreachable && untold == nil, r.Clock.Now()) // else some add-ons weren't looked at
	if untold == nil {
		removal.NoteOrphans(&seen, proofs)
	}
	proofs.Report(q.ca.Status.Addons)
	if err := r.records.Failure(q.workload.Name); fleetwatch.IsLasting(err) {
		conditions.Set(q.ca, report.RecordsUnread(err)) // what was read before may not be so any more
	}
	return r.again(q.ca, after, all.Err)
}

// again returns when to come back. A failure is tried again with backoff, and that must not make others wait that know their time.
func (r *Reconciler) again(ca *addonsv1.ClusterAddon, after time.Duration, err error) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if after > 0 {
		r.Queue.AddAfter(client.ObjectKeyFromObject(ca), after)
	}
	return ctrl.Result{}, err
}
