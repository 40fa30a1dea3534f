// SPDX-License-Identifier: Apache-2.0

package addonplan

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// maxText bounds a message in bytes.
const maxText = 1024

// stop reports why the plan can't begin now. If that doesn't pass, or didn't within the plan's time to live, the plan fails.
func (r *Reconciler) stop(ctx context.Context, p *addonsv1.AddonPlan, why *failure.Error) (ctrl.Result, error) {
	is, left := p.DeepCopy(), r.left(p)
	if !why.Passes() || left <= 0 {
		is.Status.Phase, is.Status.Finished = addonsv1.PlanFailed, r.now()
		setComplete(is, metav1.ConditionFalse, why.Reason, why.Error())
		return r.end(ctx, p, is, corev1.EventTypeWarning, "PlanFailed")
	}
	is.Status.Phase = addonsv1.PlanPending
	setComplete(is, metav1.ConditionFalse, addonsv1.PlanWaitingReason, why.Error())
	return ctrl.Result{RequeueAfter: min(left, cmp.Or(why.RetryAfter, retry.Source))}, r.Statuses.Patch(ctx, p, is)
}

// begin writes which revision the clusters are asked about.
func begin(p *addonsv1.AddonPlan, of *subject) {
	p.Status = addonsv1.AddonPlanStatus{
		Phase: addonsv1.PlanRunning, Revision: of.Revision, Clusters: addonsv1.PlanClusters{Total: int32(len(of.Clusters))}, Conditions: p.Status.Conditions,
	}
	setComplete(p, metav1.ConditionFalse, addonsv1.PlanRunningReason, "")
}

// complete reports the answer.
func (r *Reconciler) complete(ctx context.Context, p *addonsv1.AddonPlan, of *subject, sum *plan.Sum) (ctrl.Result, error) {
	is := p.DeepCopy()
	s := &is.Status
	s.Phase, s.Finished, s.ClustersDigest = addonsv1.PlanDone, r.now(), plan.DigestOf(of.Clusters)
	s.Waves = r.waves(of)
	var err error
	if s.Removals, err = r.Removals(ctx, client.ObjectKeyFromObject(of.stack), of.Revision, of.request.Spec); err != nil {
		return ctrl.Result{}, err
	}
	sum.Into(s, len(of.Clusters))
	kind := corev1.EventTypeNormal
	if s.Clusters.Refused > 0 {
		kind = corev1.EventTypeWarning
	}
	setComplete(is, metav1.ConditionTrue, addonsv1.PlanCompleteReason, describe(s))
	r.setStale(is, of)
	return r.end(ctx, p, is, kind, "PlanDone")
}

// end writes the status of a finished plan, and tells of it.
func (r *Reconciler) end(ctx context.Context, before, after *addonsv1.AddonPlan, kind, reason string) (ctrl.Result, error) {
	if err := r.Statuses.Patch(ctx, before, after); err != nil {
		return ctrl.Result{}, err
	}
	plans.WithLabelValues(string(after.Status.Phase)).Inc()
	r.Recorder.Eventf(after, nil, kind, reason, "Plan", "%s", conditions.GetMessage(after, addonsv1.CompleteCondition))
	return ctrl.Result{RequeueAfter: r.left(after)}, nil
}

// describe sums an answer up.
func describe(s *addonsv1.AddonPlanStatus) string {
	c := &s.Clusters
	text := fmt.Sprintf("Of %d clusters, %s changes %d", c.Total, s.Revision, c.Changed)
	for _, more := range []struct {
		n    int32
		what string
	}{
		{c.Refused, "refused"}, {c.Held, "held"}, {c.NotChecked, "not checked"}, {c.Unreachable, "unreachable"}, {s.Restarts, "workloads restart"}, {s.Removed, "objects deleted"},
	} {
		if more.n > 0 {
			text += fmt.Sprintf(", %s: %d", more.what, more.n)
		}
	}
	if m := s.Removals; m != nil && m.Clusters > m.Allowed {
		text += fmt.Sprintf("; the removal of add-ons will be held: %d of %d clusters lose some, and %d may", m.Clusters, m.Of, m.Allowed)
	}
	return text
}

// waves returns those of the rollout, none if the revision reaches all clusters at once.
func (r *Reconciler) waves(of *subject) []addonsv1.PlanWave {
	if of.request.Spec.Rollout == nil || len(of.selected) == 0 {
		return nil
	}
	q := standing.RolloutOf(of.stack, of.revisions)
	if q.Revision() != of.Revision && rollout.CauseOf(q.Marked, of.Revision, true) == rollout.Back {
		return nil
	}
	strategy, _ := rollout.StrategyOf(of.request.Spec.Rollout, field.NewPath("spec", "rollout")) // it was checked
	return plan.Waves(q.Input(r.Clock.Now(), r.WatchFilter, nil, of.selected), of.Revision, strategy)
}

// setStale reports whether the plan is of the present.
func (r *Reconciler) setStale(p *addonsv1.AddonPlan, of *subject) {
	reason, text := plan.StaleSince(&p.Status, of.Basis)
	c := metav1.Condition{Type: addonsv1.StaleCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message.Shorten(text, maxText)}
	if reason == addonsv1.PlanCurrentReason {
		c.Status = metav1.ConditionFalse
	}
	conditions.Set(p, c)
}

func setComplete(p *addonsv1.AddonPlan, status metav1.ConditionStatus, reason, text string) {
	conditions.Set(p, metav1.Condition{Type: addonsv1.CompleteCondition, Status: status, Reason: reason, Message: message.Shorten(text, maxText)})
}
