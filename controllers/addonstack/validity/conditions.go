// SPDX-License-Identifier: Apache-2.0

// Package validity tells of an AddonStack whether its spec is valid, and taken up.
package validity

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// maxNotes is how much of a bundle's notes a message has.
const maxNotes = 4096 // bytes

// SetPaused writes the Paused condition, and reports whether the stack is paused.
func SetPaused(s *addonsv1.AddonStack) bool {
	paused := annotations.HasPaused(s)
	c := report.Condition(addonsv1.PausedCondition, metav1.ConditionFalse, addonsv1.NotPausedReason, "")
	if paused {
		c = report.Condition(c.Type, metav1.ConditionTrue, addonsv1.PausedReason,
			"Annotation cluster.x-k8s.io/paused is set: changes of spec are not taken up, and nothing is written to any cluster")
	}
	conditions.Set(s, c)
	return paused
}

// ReportInvalid writes that the spec isn't valid.
func ReportInvalid(s *addonsv1.AddonStack, reason, action, problem string, events report.Events) {
	c := report.Condition(addonsv1.ValidCondition, metav1.ConditionFalse, reason, problem+". Clusters stay as they are")
	events.Warn(s, c, reason, action)
}

// Describe names the first problems: a message has a limit.
func Describe(problems []stack.Problem) string {
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.Error.Error())
	}
	return report.FirstOf(texts)
}

// SetValid writes that the spec is valid. If bundle is "", what this generation's message says stays.
func SetValid(s *addonsv1.AddonStack, bundle string) {
	before := conditions.Get(s, addonsv1.ValidCondition)
	if bundle == "" && s.Spec.Source != nil && before != nil && before.Status == metav1.ConditionTrue && before.ObservedGeneration == s.Generation {
		bundle = before.Message
	}
	conditions.Set(s, report.Condition(addonsv1.ValidCondition, metav1.ConditionTrue, addonsv1.ValidReason, bundle))
}

// ReportUnkept writes that the spec is valid, and could not be kept as a revision.
func ReportUnkept(s *addonsv1.AddonStack, err error) {
	conditions.Set(s, report.Condition(addonsv1.ValidCondition, metav1.ConditionUnknown, addonsv1.InternalErrorReason,
		"The spec is valid, but can't be kept as a ControllerRevision: "+message.Shorten(err.Error(), report.MaxProblem)))
}

// Report writes the Valid condition, with what the bundle is, or what is wrong with it. While nobody can tell what an
// invalid bundle is by now, the condition stays.
func Report(s *addonsv1.AddonStack, e *following.Expansion, failed *failure.Error, events report.Events) {
	switch {
	case failed != nil && following.MakesInvalid(failed.Reason):
		ReportInvalid(s, failed.Reason, "Expand", message.Shorten(following.OfBundle(failed), report.MaxProblem), events)
	case failed != nil && following.IsInconclusive(failed) && following.HasInvalidBundle(s):
	case e == nil:
		SetValid(s, "")
	default:
		SetValid(s, message.Shorten(strings.Join(e.Notes, "; "), maxNotes))
	}
}
