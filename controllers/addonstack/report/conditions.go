// SPDX-License-Identifier: Apache-2.0

// Package report has the conditions of an AddonStack, and the events beside them.
package report

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// Condition returns a condition. The code that sets it adds the times.
func Condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// Severity ranks what several instances or clusters say: the highest counts for all of them.
func Severity(c *metav1.Condition) int {
	bad := metav1.ConditionFalse
	if c.Type == addonsv1.PausedCondition {
		bad = metav1.ConditionTrue
	}
	switch {
	case c.Status == bad:
		return 2
	case c.Reason == addonsv1.SourceNotAskedReason: // who has asked knows better
		return -1
	case c.Status == metav1.ConditionUnknown:
		return 1
	}
	return 0
}

// Summarize writes the Ready condition from the others, and Stalled if somebody has to act. A pause is wanted, so
// it makes nothing worse.
func Summarize(s *addonsv1.AddonStack) {
	ready := Condition(addonsv1.ReadyCondition, metav1.ConditionTrue, addonsv1.ReadyReason, "")
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
	stalled := reasons.Of(ready.Reason).Stalls(addonsv1.AddonPending) // the spec waits for what a source has answered that it doesn't give
	if ready.Status == metav1.ConditionFalse {
		stalled = ready.Reason != addonsv1.ClustersProgressingReason && ready.Reason != addonsv1.RemovalHeldReason
	}
	if stalled {
		conditions.Set(s, Condition(addonsv1.StalledCondition, metav1.ConditionTrue, ready.Reason, ready.Message))
	} else {
		conditions.Delete(s, addonsv1.StalledCondition)
	}
}

// isStopped reports whether somebody is to look at a rollout: what runs isn't what the spec says, and stays so.
func isStopped(s *addonsv1.AddonStack) bool {
	reason := conditions.GetReason(s, addonsv1.RolledOutCondition)
	return reason == string(addonsv1.RolloutHalted) || reason == string(addonsv1.RolloutRolledBack)
}
