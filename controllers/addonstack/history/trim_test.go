// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/history"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// However many revisions were rejected after it, the one that clusters go back to stays, also while none of them runs it. So does
// one that a cluster runs, and it takes no place of those that none runs.
func TestHistoryKeepsTheWayBack(t *testing.T) {
	h, s, _ := keeping(t)
	stacks.Read(t, h.Client, s)
	s.Spec.Rollout = &addonsv1.Rollout{}
	var revisions []appsv1.ControllerRevision
	for i := range history.Limit + 6 { // the newest first
		revision := stack.Snapshot(s, fmt.Appendf(nil, `{"addons":[{"name":"a%d"}]}`, i), int64(100-i))
		attempt := rollout.Attempt{Number: revision.Revision, Cause: rollout.Edited, Started: time.Unix(1e9, 0)}
		if i == history.Limit+5 {
			attempt.Completed = attempt.Started
		} else {
			metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutRejectedAnnotation, "broken")
		}
		attempt.Note(revision)
		must.Succeed(t, h.Client.Create(t.Context(), revision))
		revisions = append(revisions, *revision)
	}
	for name, runs := range map[string]int{"prod": history.Limit + 4, "test": 5} {
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: s.Name, Revision: revisions[runs].Name}}
		if name == "test" { // it goes back to another one
			ca.Status.Stacks = []addonsv1.StackStatus{{Name: s.Name, Revision: revisions[runs].Name, Previous: revisions[history.Limit+3].Name}}
		}
		must.Succeed(t, h.Client.Create(t.Context(), ca))
	}
	must.Succeed(t, h.Trim(t.Context(), s, revisions))
	left := &appsv1.ControllerRevisionList{}
	must.Succeed(t, h.Client.List(t.Context(), left))
	for i, want := range map[int]bool{0: true, 5: true, history.Limit + 1: true, history.Limit + 2: false, history.Limit + 3: true, history.Limit + 4: true, history.Limit + 5: true} {
		if has := slices.ContainsFunc(left.Items, func(is appsv1.ControllerRevision) bool { return is.Name == revisions[i].Name }); has != want {
			t.Errorf("revision %d is there: %t", i, has)
		}
	}
}
