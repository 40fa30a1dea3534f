// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/test/must"
)

// planOf returns a plan of a stack with all that a plan may have, some of it hostile.
func planOf(stack, name string, made time.Time) *addonsv1.AddonPlan {
	is := &addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: metav1.NewTime(made)}}
	is.Spec.StackName = stack
	is.Status = addonsv1.AddonPlanStatus{
		Phase: addonsv1.PlanDone, Revision: name + "-revision", Finished: metav1.NewTime(made),
		Conditions: []metav1.Condition{
			{Type: addonsv1.CompleteCondition, Status: metav1.ConditionTrue, Message: "Of 9 clusters, it changes 4, refused: 2, unreachable: 1, workloads restart: 8"},
			{Type: addonsv1.StaleCondition, Status: metav1.ConditionTrue, Message: "of the past"},
		},
		Waves: []addonsv1.PlanWave{{Name: "canary", Total: 1, Members: []string{"prod-0000"}}},
		Groups: []addonsv1.PlanGroup{
			{Clusters: 4, Examples: []string{"prod-0000", "prod-0001"}, Addons: []addonsv1.PlanAddon{{Name: "web", State: plan.Changed}}, Changes: []addonsv1.PlanChange{{
				Addon: "web", Kind: "Deployment", Name: hostile, Action: plan.Update, Restarts: true, Message: hostile,
				Fields: []addonsv1.PlanField{{Path: hostile, Old: hostile, New: hostile}},
			}}},
			{Clusters: 2, Addons: []addonsv1.PlanAddon{{Name: "web", State: plan.Refused, Reason: hostile, Message: hostile}}},
		},
	}
	return is
}

// The view of a stack shows the plan of it that was made last, as the command plan prints it, or why there is none.
func TestPlan(t *testing.T) {
	const none, read = "kubectl chandler plan platform -n team", "kubectl get addonplan "
	now := time.Now().Truncate(time.Second)
	earlier, last := planOf("platform", "earlier", now.Add(-time.Hour)), planOf("platform", "last", now)
	same, other := planOf("platform", "alike", now), planOf("other", "other", now.Add(time.Minute))
	begun := planOf("platform", "begun", now.Add(time.Minute))
	begun.Status = addonsv1.AddonPlanStatus{}
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, isPlans := list.(*addonsv1.AddonPlanList); isPlans {
			return apierrors.NewForbidden(schema.GroupResource{Group: addonsv1.GroupVersion.Group, Resource: "addonplans"}, "", nil)
		}
		return c.List(ctx, list, options...)
	}}
	for name, tc := range map[string]struct {
		plans     []client.Object
		answers   interceptor.Funcs
		shown     *addonsv1.AddonPlan
		has, none []string
	}{
		"none":              {none: []string{"<pre>", read, "forbidden"}, has: []string{none}},
		"of another stack":  {plans: []client.Object{other}, none: []string{"<pre>", read}, has: []string{none}},
		"the newest":        {plans: []client.Object{last, earlier, same, other}, shown: last, has: []string{"Plan: Done", read + "last -n team -o yaml", "of the past"}, none: []string{none, "earlier", "alike"}},
		"one that is begun": {plans: []client.Object{last, begun}, shown: begun, has: []string{read + "begun "}, none: []string{"Plan: Done", "of the past"}},
		"it is forbidden":   {plans: []client.Object{last}, answers: forbidden, has: []string{"addonplans.addons.cluster.x-k8s.io is forbidden"}, none: []string{"<pre>", read, none}},
	} {
		w := get(pageOf(t, tc.answers, append(fleetOf(t, 2, 1), tc.plans...)...), "/stack/team/platform", nil)
		body := w.Body.String()
		isHarmless(t, name, body)
		if w.Code != http.StatusOK || !strings.Contains(body, "Revisions") {
			t.Errorf("%s: %d: %s", name, w.Code, body)
		}
		if tc.shown != nil {
			text := &strings.Builder{}
			must.Succeed(t, (&printing.Printer{Out: text, Now: now}).Write("Plan", tc.shown))
			tc.has = append(tc.has, text.String())
		}
		for _, part := range tc.has {
			if !strings.Contains(html.UnescapeString(body), part) {
				t.Errorf("%s: %s isn't in %s", name, part, body)
			}
		}
		for _, part := range tc.none {
			if strings.Contains(body, part) {
				t.Errorf("%s: %s is in %s", name, part, body)
			}
		}
	}
}
