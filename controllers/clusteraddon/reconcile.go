// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
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

	before, stored, blocked := ca.DeepCopy(), ca.DeepCopy(), gate(ca, cluster)
	defer func() {
		for _, next := range r.inputTurns.settle(before, ca, blocked) {
			r.Queue.Add(next)
		}
		summarize(ca)
		r.recordEvents(before, ca)
		retry, err := management.Retry(ctx, result, r.statuses.Patch(ctx, stored, ca))
		result, reterr = retry, errors.Join(reterr, err)
	}()

	removes := removesBeforeDeletion(ca, cluster)
	if blocked && !removes {
		if moves(cluster) {
			ca.Status.Deletion = nil
		}
		ca.Status.ObservedGeneration = ca.Generation
		return ctrl.Result{}, nil
	}
	name := r.Members.Names.Fleet(ca)
	conn := r.reach(ca, name)
	if conn == nil {
		return r.unseen(ca, cluster, removes), nil
	}
	return r.deliver(ctx, &clusterRun{
		Reconciler: r, ca: ca, stored: stored, cluster: cluster, removes: removes,
		workload: workload.Cluster{Name: name, Conn: conn, Namespace: ca.Namespace}, memory: r.memoryOf(req.NamespacedName), now: r.Clock.Now(),
	})
}

// unseen writes that the deletion of a Cluster, or an upgrade, waits for a cluster of which nothing can be seen. While no
// condition says so, as after each restart, both stay as they are.
func (r *Reconciler) unseen(ca *addonsv1.ClusterAddon, cluster *member.Member, removes bool) ctrl.Result {
	switch why := whyUnseen(ca); {
	case why != nil && removes:
		return deletionUnseen(ca, why.LastTransitionTime.Time, r.Clock.Now())
	case why != nil:
		return ctrl.Result{RequeueAfter: r.upgradeUnseen(ca, cluster)}
	case removes:
		tellDeletion(ca)
	}
	return ctrl.Result{}
}

// whyUnseen returns the condition that says that nothing can be seen of the cluster, nil while none does.
func whyUnseen(ca *addonsv1.ClusterAddon) *metav1.Condition {
	if c := conditions.Get(ca, addonsv1.ClusterReachableCondition); c != nil && c.Status != metav1.ConditionTrue {
		return c
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil && c.Status == metav1.ConditionUnknown {
		return c
	}
	return nil
}

// deliver compares what the cluster is to run with what it runs, and acts on that.
func (r *Reconciler) deliver(ctx context.Context, q *clusterRun) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(q.ca)
	ctx = r.Sources.Waiting(ctx, "ClusterAddon "+key.String(), func() { r.Queue.Add(key) })
	ctx, leave, ok := r.lanes.enter(ctx, key)
	if !ok {
		return ctrl.Result{RequeueAfter: retry.Room}, nil
	}
	var all result
	ctx, waited := deliver.WithOneWait(ctx)
	defer func() { leave(all.unreachable || waited()) }()
	ctx = render.WithPatience(budget.WithTenant(ctx, budget.Tenant{Namespace: key.Namespace, Cluster: key.Name}), render.Patience)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.workload.Conn.Context(), cancel)() // it ends with the connection, too
	if same, err := q.isSame(ctx); !same {
		result := q.unseen(q.ca, q.cluster, q.removes)
		if err != nil {
			result = ctrl.Result{} // the error has it tried again
		}
		return result, err
	}
	known, err := gathering{q}.read(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !known { // once they are, the record watch starts the next reconcile
		if err := r.records.Failure(q.workload.Name); err != nil || !conditions.Has(q.ca, addonsv1.AddonsReadyCondition) {
			conditions.Set(q.ca, recordsUnread(err))
		}
		return q.unseen(q.ca, q.cluster, q.removes), nil
	}
	if q.removes {
		return removal{q}.removeBeforeDeletion(ctx)
	}
	if err := (statusReport{q}).announce(ctx); err != nil {
		return management.Retry(ctx, ctrl.Result{}, err)
	}
	q.again = isAskedAgain(q.ca)
	q.watched.Watch(q.workload.Name, q.workload.Conn, expectedObjects(q.wanted, q.installed))
	untold := removal{q}.tellOrphans(ctx)
	var successors []*wanted.Addon
	all, successors = delivery{q}.ensureAll(ctx)
	removal{q}.removeLeaving(ctx, successors, &all)
	return statusReport{q}.finish(all, untold)
}
