// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// plannedRevision is the index of AddonPlans that are done, by their revision.
const plannedRevision = "planned"

// IndexPlans has a cache find the plans of a revision. Each reconcile of a rollout that waits for approval asks for them.
func IndexPlans(ctx context.Context, plans client.FieldIndexer) error {
	return plans.IndexField(ctx, &addonsv1.AddonPlan{}, plannedRevision, func(obj client.Object) []string {
		if p, ok := obj.(*addonsv1.AddonPlan); ok && p.Status.Phase == addonsv1.PlanDone {
			return []string{p.Status.Revision}
		}
		return nil
	})
}

// planned returns what the target does by its newest plan, "" if there is none.
func (r Rollouts) planned(ctx context.Context, q *gathered) (string, error) {
	plans := &addonsv1.AddonPlanList{}
	if err := r.Client.List(ctx, plans, client.InNamespace(q.Stack.Namespace), client.MatchingFields{plannedRevision: q.Revision()}, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return "", fmt.Errorf("listing the AddonPlans of %s: %w", q.Revision(), err)
	}
	p := plans.NewestOf(q.Stack.Name, q.Revision())
	if p == nil {
		return "", nil
	}
	return fmt.Sprintf("AddonPlan %s: %s", p.Name, conditions.GetMessage(p, addonsv1.CompleteCondition)), nil
}
