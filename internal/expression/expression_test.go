// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
)

func TestHolds(t *testing.T) {
	wait := &addonsv1.ObjectsCondition{
		Objects:    []addonsv1.ConditionObject{{Key: "agents", APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cilium"}},
		Expression: "agents.status.numberReady == agents.status.desiredNumberScheduled",
	}
	condition, err := expression.Of(wait)
	if err != nil {
		t.Fatal(err)
	}
	agents := func(ready int64) map[string]any {
		return map[string]any{"agents": map[string]any{"status": map[string]any{"numberReady": ready, "desiredNumberScheduled": int64(2)}}}
	}
	for ready, want := range map[int64]bool{1: false, 2: true} {
		if got, err := condition.Holds(t.Context(), agents(ready)); err != nil || got != want {
			t.Errorf("with %d ready: %t, %v", ready, got, err)
		}
	}
	if got, err := condition.Holds(t.Context(), map[string]any{"agents": map[string]any{}}); got || err == nil || !strings.HasSuffix(err.Error(), ": status") {
		t.Errorf("without a status: %t, %v; want an error that names it", got, err)
	}
	endless := &addonsv1.ObjectsCondition{Expression: "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(f, [1,2,3,4,5,6,7,8,9].all(g, a+b+c+d+e+f+g > 0)))))))"}
	costly, err := expression.Of(endless)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := costly.Holds(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "too many steps") {
		t.Errorf("a costly expression ends with %v, want the limit of its steps", err)
	}
}
