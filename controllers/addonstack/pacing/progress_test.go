// SPDX-License-Identifier: Apache-2.0

package pacing_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/pacing"
)

// Counts that only grow may wait a moment. All else is told at once.
func TestIsProgress(t *testing.T) {
	before := addonsv1.AddonStackStatus{
		ObservedGeneration: 2,
		Clusters:           &addonsv1.ClusterCounts{Total: 8, Ready: 3, Failed: 1, Waiting: 1, Updated: ptr.To[int32](4), Unstarted: ptr.To[int32](2)},
		Rollout:            &addonsv1.RolloutStatus{Waves: []addonsv1.RolloutWaveStatus{{Name: "first", Total: 4, Done: 3, Failed: 1}}},
		Conditions: []metav1.Condition{
			{Type: addonsv1.ClustersReadyCondition, Status: metav1.ConditionFalse, Reason: addonsv1.ClustersFailedReason, Message: "1 of 8 clusters failed"},
			{Type: addonsv1.ValidCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ValidReason},
		},
	}
	for name, tc := range map[string]struct {
		change func(*addonsv1.AddonStackStatus)
		want   bool
	}{
		"nothing changed": {change: func(*addonsv1.AddonStackStatus) {}},
		"one more is ready": {change: func(s *addonsv1.AddonStackStatus) {
			s.Clusters.Ready, s.Rollout.Waves[0].Done, s.Conditions[0].Message = 4, 4, "another cause"
		}, want: true},
		"one more is updated": {change: func(s *addonsv1.AddonStackStatus) {
			s.Clusters.Updated, s.Clusters.Unstarted, s.Rollout.Waves[0].Updated = ptr.To[int32](5), ptr.To[int32](1), 5
		}, want: true},
		"one isn't ready any more": {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Ready = 2 }},
		"one more fails":           {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Ready, s.Clusters.Failed = 4, 2 }},
		"none fails any more":      {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Ready, s.Clusters.Failed = 4, 0 }},
		"one is away":              {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Waiting = 2 }},
		"one comes":                {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Total = 9 }},
		"all are ready":            {change: func(s *addonsv1.AddonStackStatus) { s.Clusters.Ready, s.Conditions[0].Status = 8, metav1.ConditionTrue }},
		"another reason":           {change: func(s *addonsv1.AddonStackStatus) { s.Conditions[0].Reason = addonsv1.RemovalHeldReason }},
		"another problem":          {change: func(s *addonsv1.AddonStackStatus) { s.Conditions[1].Message = "a note" }},
		"a wave ends":              {change: func(s *addonsv1.AddonStackStatus) { s.Rollout.WavesDone = 1 }},
		"one of a wave fails":      {change: func(s *addonsv1.AddonStackStatus) { s.Rollout.Waves[0].Failed = 2 }},
		"the rollout ends":         {change: func(s *addonsv1.AddonStackStatus) { s.Rollout = nil }},
		"the spec is seen":         {change: func(s *addonsv1.AddonStackStatus) { s.ObservedGeneration = 3 }},
		"a source":                 {change: func(s *addonsv1.AddonStackStatus) { s.Sources = []addonsv1.StackSource{{Addon: "a"}} }},
		"nothing is counted":       {change: func(s *addonsv1.AddonStackStatus) { s.Clusters = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := before.DeepCopy(), before.DeepCopy()
			tc.change(is)
			if got := pacing.IsProgress(was, is); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	first := before.DeepCopy()
	first.Clusters = nil
	if pacing.IsProgress(first, &before) {
		t.Error("the first count waits")
	}
}
