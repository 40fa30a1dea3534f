// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/memory"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// IsSlow implements [plan.Previewer].
func (r *Reconciler) IsSlow(cluster types.NamespacedName) bool { return r.lanes.IsSlow(cluster) }

// Preview implements [plan.Previewer]. A cluster that is about to be connected, as after a restart, is waited for until the context ends.
func (r *Reconciler) Preview(ctx context.Context, request plan.Request) (is []plan.Addon, err error) {
	err = wait.PollUntilContextCancel(ctx, retry.Moment, true, func(ctx context.Context) (answers bool, err error) {
		is, answers, err = r.preview(ctx, request)
		return answers, err
	})
	return is, err
}

// preview gathers and decides as a reconcile does, with a memory of its own that is lost then. A cluster doesn't answer yet
// that was neither found to be unreachable, nor looked at, or has no ClusterAddon yet.
func (r *Reconciler) preview(ctx context.Context, request plan.Request) (is []plan.Addon, answers bool, err error) {
	ca := &addonsv1.ClusterAddon{}
	if err := r.Client.Get(ctx, request.Cluster, ca); err != nil {
		return nil, false, client.IgnoreNotFound(err) // it is made as soon as the Cluster is seen
	}
	cluster, err := r.Members.Of(ctx, ca)
	if err != nil {
		return is, false, err
	}
	name := r.Members.Names.Fleet(ca)
	conn, connected := r.Fleet.Connection(name)
	if cluster == nil || !connected {
		phase := r.Fleet.State(name).Phase
		return plan.Silent(), cluster == nil || phase != fleet.PhaseUnknown && phase != fleet.PhaseConnecting, nil
	}
	ctx, cancel := context.WithCancel(budget.WithTenant(ctx, budget.Tenant{Namespace: ca.Namespace, Cluster: ca.Name, Last: true}))
	defer cancel()
	defer context.AfterFunc(conn.Context(), cancel)()
	q := pass{
		ca: ca, stored: ca.DeepCopy(), cluster: cluster, memory: &remembered{addons: memory.New()}, now: r.Clock.Now(),
		workload: workload.Cluster{Name: name, Conn: conn, Namespace: ca.Namespace},
	}
	if same, err := q.memory.identity.IsSame(ctx, r.Fleet, ca, q.workload); err != nil {
		return plan.Silent(), true, nil
	} else if !same {
		why := conditions.Get(ca, addonsv1.ClusterReachableCondition)
		return []plan.Addon{plan.In(plan.Held, why.Reason, why.Message)}, true, nil
	}
	q.memory.proofs.Restore(q.stored, ca.UID)
	reader := r.gather(q)
	reader.Users = &inputs.References{}
	assigned, err := reader.Planned(ctx, ca, request)
	if err != nil {
		return is, false, err
	}
	seen, known, err := reader.Observe(ctx, ca, assigned)
	if known && err == nil {
		leaving, kept := removal.Unwanted{Observed: &seen, Proofs: &q.memory.proofs, NeedsAccount: r.RequireImpersonation}.Partition()
		of := delivery.Preview{Delivery: r.delivery(q, &seen, releases.Names(leaving)), Request: request, Removed: leaving, Kept: kept}
		is, err = of.All(ctx)
		if report.Gate(ca, cluster) {
			hold(is, report.Blocks(ca))
		}
	}
	if conn.Context().Err() != nil {
		return plan.Silent(), true, nil
	}
	return is, known, err
}

// hold has what would change wait, as nothing is done on a cluster that is paused or deleted.
func hold(addons []plan.Addon, because *metav1.Condition) {
	for i := range addons {
		if a := &addons[i]; a.State == plan.Changed {
			a.State, a.Reason, a.Message = plan.Held, because.Reason, because.Message
		}
	}
}
