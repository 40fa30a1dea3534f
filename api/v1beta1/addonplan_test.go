// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Lists of a cache have no order: of plans that were done in the same second, it is always the same one.
func TestNewestPlan(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	planned := func(name, stack, revision string, phase addonsv1.PlanPhase, finished metav1.Time) addonsv1.AddonPlan {
		return addonsv1.AddonPlan{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: addonsv1.AddonPlanSpec{StackName: stack},
			Status: addonsv1.AddonPlanStatus{Phase: phase, Revision: revision, Finished: finished},
		}
	}
	later := metav1.NewTime(now.Add(time.Second))
	narrowed := planned("narrowed", "web", "web-1", addonsv1.PlanDone, later)
	narrowed.Spec.ClusterSelector = &metav1.LabelSelector{}
	others := []addonsv1.AddonPlan{
		narrowed, planned("failed", "web", "web-1", addonsv1.PlanFailed, later), planned("other", "web", "web-2", addonsv1.PlanDone, later), planned("of-another", "db", "web-1", addonsv1.PlanDone, later),
	}
	for name, c := range map[string]struct {
		first, second addonsv1.AddonPlan
		want          string
	}{
		"the later one": {planned("b", "web", "web-1", addonsv1.PlanDone, now), planned("a", "web", "web-1", addonsv1.PlanDone, later), "a"},
		"in one second": {planned("a", "web", "web-1", addonsv1.PlanDone, now), planned("b", "web", "web-1", addonsv1.PlanDone, now), "b"},
		"that is done":  {planned("a", "web", "web-1", addonsv1.PlanDone, now), planned("b", "web", "web-1", addonsv1.PlanRunning, later), "a"},
	} {
		for _, order := range [][]addonsv1.AddonPlan{{c.first, c.second}, {c.second, c.first}} {
			l := addonsv1.AddonPlanList{Items: append(order, others...)}
			if got := l.NewestOf("web", "web-1"); got == nil || got.Name != c.want {
				t.Errorf("%s: %v, not %s", name, got, c.want)
			}
		}
	}
	if got := (&addonsv1.AddonPlanList{Items: others}).NewestOf("web", "web-1"); got != nil {
		t.Errorf("there is none, not %s", got.Name)
	}
}
