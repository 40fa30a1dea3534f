// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// setPaused writes the Paused condition, and says whether the stack is paused.
func setPaused(s *addonsv1.AddonStack) bool {
	paused := annotations.HasPaused(s)
	c := metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionFalse, Reason: addonsv1.NotPausedReason}
	if paused {
		c.Status, c.Reason = metav1.ConditionTrue, addonsv1.PausedReason
		c.Message = "Annotation cluster.x-k8s.io/paused is set: changes of spec are not taken up"
	}
	conditions.Set(s, c)
	return paused
}

// reportValidity writes the Valid condition, and an event when it turns False.
func (r *Reconciler) reportValidity(s *addonsv1.AddonStack, problems []stack.Problem) {
	c := metav1.Condition{Type: addonsv1.ValidCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ValidReason}
	if len(problems) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, problems[0].Reason
		c.Message = describe(problems) + ". Clusters stay as they are"
	}
	before := conditions.Get(s, addonsv1.ValidCondition)
	if len(problems) == 0 && s.Spec.Source != nil && before != nil && before.Status == c.Status && before.ObservedGeneration == s.Generation {
		c.Message = before.Message // what its bundle is
	}
	if len(problems) > 0 && (before == nil || before.Message != c.Message) {
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, c.Reason, "Validate", "%s", c.Message)
	}
	conditions.Set(s, c)
}

// describe names the first problems: a message has a limit.
func describe(problems []stack.Problem) string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Error.Error())
	}
	return firstOf(texts)
}

// reportUnkept says that the spec is valid, and could not be kept as a revision.
func reportUnkept(s *addonsv1.AddonStack, err error) {
	if isBehind(err) {
		return
	}
	conditions.Set(s, metav1.Condition{
		Type: addonsv1.ValidCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.InternalErrorReason,
		Message: "The spec is valid, but can't be kept as a ControllerRevision: " + shorten(err.Error()),
	})
}

// summarize writes the Ready condition from the others.
func summarize(s *addonsv1.AddonStack) {
	c := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ReadyReason}
	parts := []string{addonsv1.ValidCondition, addonsv1.ClustersReadyCondition}
	if c := conditions.Get(s, addonsv1.SourcesReadyCondition); c != nil && c.Status == metav1.ConditionUnknown && c.Reason != addonsv1.SourceNotAskedReason { // then no revision has the spec
		parts = []string{addonsv1.ValidCondition, addonsv1.SourcesReadyCondition}
	}
	for _, kind := range parts {
		part := conditions.Get(s, kind)
		if part == nil {
			continue
		}
		if c.Message = part.Message; part.Status != metav1.ConditionTrue {
			c.Status, c.Reason = part.Status, part.Reason
			break
		}
	}
	if sources := conditions.GetMessage(s, addonsv1.SourcesReadyCondition); conditions.IsFalse(s, addonsv1.SourcesReadyCondition) && !strings.Contains(c.Message, sources) {
		c.Message += ". " + sources
	}
	if conditions.IsTrue(s, addonsv1.PausedCondition) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonsv1.PausedReason, conditions.GetMessage(s, addonsv1.PausedCondition)
	}
	conditions.Set(s, c)
}
