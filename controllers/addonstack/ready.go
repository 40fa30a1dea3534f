// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// summarize writes the Ready condition from the others, and Stalled if somebody has to act. A pause is wanted, so
// it makes nothing worse.
func summarize(s *addonsv1.AddonStack) {
	ready := newCondition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.ReadyReason, "")
	parts := []string{addonsv1.ValidCondition, addonsv1.ClustersReadyCondition}
	sources := conditions.Get(s, addonsv1.SourcesReadyCondition)
	if sources != nil && sources.Status == metav1.ConditionUnknown && sources.Reason != addonsv1.SourceNotAskedReason { // then no revision has the spec
		parts[1] = addonsv1.SourcesReadyCondition
	}
	if isStopped(s) {
		parts = slices.Insert(parts, 1, addonsv1.RolledOutCondition)
	}
	for _, kind := range parts {
		part := conditions.Get(s, kind)
		if part == nil {
			continue
		}
		if ready.Message = part.Message; part.Status != metav1.ConditionTrue {
			ready.Status, ready.Reason = part.Status, part.Reason
			break
		}
	}
	if sources != nil && sources.Status == metav1.ConditionFalse && !strings.Contains(ready.Message, sources.Message) {
		ready.Message += ". " + sources.Message
	}
	if conditions.IsTrue(s, addonsv1.PausedCondition) {
		if ready.Message = strings.TrimPrefix(ready.Message+". ", ". ") + conditions.GetMessage(s, addonsv1.PausedCondition); ready.Status == metav1.ConditionTrue {
			ready.Reason = addonsv1.PausedReason
		}
	}
	conditions.Set(s, ready)
	if ready.Status == metav1.ConditionFalse && ready.Reason != addonsv1.ClustersProgressingReason && ready.Reason != addonsv1.RemovalHeldReason {
		conditions.Set(s, newCondition(addonsv1.StalledCondition, metav1.ConditionTrue, ready.Reason, ready.Message))
	} else {
		conditions.Delete(s, addonsv1.StalledCondition)
	}
}
