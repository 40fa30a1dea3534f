// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// setPaused writes the Paused condition, and reports whether the stack is paused.
func setPaused(s *addonsv1.AddonStack) bool {
	paused := annotations.HasPaused(s)
	c := newCondition(addonsv1.PausedCondition, metav1.ConditionFalse, addonsv1.NotPausedReason, "")
	if paused {
		c = newCondition(c.Type, metav1.ConditionTrue, addonsv1.PausedReason,
			"Annotation cluster.x-k8s.io/paused is set: changes of spec are not taken up, and nothing is written to any cluster")
	}
	conditions.Set(s, c)
	return paused
}

// reportInvalid writes that the spec isn't valid.
func (r *Reconciler) reportInvalid(s *addonsv1.AddonStack, reason, action, problem string) {
	c := newCondition(addonsv1.ValidCondition, metav1.ConditionFalse, reason, problem+". Clusters stay as they are")
	r.warn(s, c, reason, action)
}

// describe names the first problems: a message has a limit.
func describe(problems []stack.Problem) string {
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.Error.Error())
	}
	return firstOf(texts)
}

// setValid writes that the spec is valid. If bundle is "", what this generation's message says stays.
func setValid(s *addonsv1.AddonStack, bundle string) {
	before := conditions.Get(s, addonsv1.ValidCondition)
	if bundle == "" && s.Spec.Source != nil && before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == s.Generation {
		bundle = before.Message
	}
	conditions.Set(s, newCondition(addonsv1.ValidCondition, metav1.ConditionTrue, addonsv1.ValidReason, bundle))
}

// reportUnkept writes that the spec is valid, and could not be kept as a revision.
func reportUnkept(s *addonsv1.AddonStack, err error) {
	conditions.Set(s, newCondition(addonsv1.ValidCondition, metav1.ConditionUnknown, addonsv1.InternalErrorReason,
		"The spec is valid, but can't be kept as a ControllerRevision: "+message.Shorten(err.Error(), maxProblem)))
}

// newCondition returns a condition. The code that sets it adds the times.
func newCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// warn writes a condition that says what is wrong, and sends an event if its message is new.
func (r *Reconciler) warn(s *addonsv1.AddonStack, c metav1.Condition, reason, action string) {
	if conditions.GetMessage(s, c.Type) != c.Message {
		r.event(s, corev1.EventTypeWarning, reason, action, c.Message)
	}
	conditions.Set(s, c)
}

// event sends an event, whose text may be too long for one.
func (r *Reconciler) event(s *addonsv1.AddonStack, kind, reason, action, text string) {
	r.Recorder.Eventf(s, nil, kind, reason, action, "%s", message.Shorten(text, maxNote))
}

// severity ranks what several instances or clusters say: the highest counts for all of them.
func severity(c *metav1.Condition) int {
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
	stalled := reasons.Of(ready.Reason).Stalls(addonsv1.AddonPending) // the spec waits for what a source has answered that it doesn't give
	if ready.Status == metav1.ConditionFalse {
		stalled = ready.Reason != addonsv1.ClustersProgressingReason && ready.Reason != addonsv1.RemovalHeldReason
	}
	if stalled {
		conditions.Set(s, newCondition(addonsv1.StalledCondition, metav1.ConditionTrue, ready.Reason, ready.Message))
	} else {
		conditions.Delete(s, addonsv1.StalledCondition)
	}
}

// isStopped reports whether somebody is to look at a rollout: what runs isn't what the spec says, and stays so.
func isStopped(s *addonsv1.AddonStack) bool {
	reason := conditions.GetReason(s, addonsv1.RolledOutCondition)
	return reason == string(addonsv1.RolloutHalted) || reason == string(addonsv1.RolloutRolledBack)
}
