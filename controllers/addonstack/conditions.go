// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// newCondition returns a condition. The code that sets it adds the times.
func newCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// setPaused writes the Paused condition, and reports whether the stack is paused.
func setPaused(s *addonsv1.AddonStack) bool {
	paused := annotations.HasPaused(s)
	c := newCondition(addonsv1.PausedCondition, metav1.ConditionFalse, addonsv1.NotPausedReason, "")
	if paused {
		c = newCondition(c.Type, metav1.ConditionTrue, addonsv1.PausedReason,
			"Annotation cluster.x-k8s.io/paused is set: changes of spec are not taken up")
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

// reportSources writes the SourcesReady condition, and an event of what is wrong.
// It is about status.sources, too, which is up to date unless the spec waits.
func (r *Reconciler) reportSources(s *addonsv1.AddonStack, f *resolution) {
	c, before := sourcesReady(f, s.Status.Sources), ptr.Deref(conditions.Get(s, addonsv1.SourcesReadyCondition), metav1.Condition{})
	switch {
	case isAskedAgain(s, f, before, c):
		return // what the last try came to stands until there is an answer
	case len(f.failures) > 0:
		r.warn(s, c, f.failures[0].err.Reason, "Follow")
		return
	case c.Status == metav1.ConditionFalse && (before.Status != c.Status || before.Reason != c.Reason):
		r.event(s, corev1.EventTypeWarning, c.Reason, "Fetch", c.Message) // one, however many clusters say so
	}
	conditions.Set(s, c)
}

// isAskedAgain reports whether sources that failed before are asked again, and have said nothing yet.
func isAskedAgain(s *addonsv1.AddonStack, f *resolution, before, now metav1.Condition) bool {
	polls, same := f.polling && len(f.failures) == 0, before.ObservedGeneration == s.Generation
	switch {
	case before.Status == metav1.ConditionFalse && len(f.waiting) == 0:
		return polls || same && now.Status == metav1.ConditionTrue && anyAsked(s.Status.Sources)
	case before.Status == metav1.ConditionUnknown && len(f.waiting) > 0:
		return polls && same && strings.HasPrefix(before.Message, waitsForSources)
	}
	return false
}

// waitsForSources begins the message about versions that could not be found.
const waitsForSources = "The spec waits for its sources. "

// anyAsked reports whether a source is being asked now.
func anyAsked(sources []addonsv1.StackSource) bool {
	return slices.ContainsFunc(sources, func(from addonsv1.StackSource) bool {
		c := meta.FindStatusCondition(from.Conditions, addonsv1.SourceAvailableCondition)
		return c != nil && c.Reason == failure.ArtifactPending
	})
}

// sourcesReady makes the condition from polls for versions, and then from what clusters say.
func sourcesReady(f *resolution, sources []addonsv1.StackSource) metav1.Condition {
	const kind = addonsv1.SourcesReadyCondition
	var reasons, texts, unasked []string
	for _, failed := range f.failures {
		text := failed.text()
		if version, refused := f.available[failed.addon]; refused && !failed.withdrawn {
			text += fmt.Sprintf(". So %s isn't taken, %s", version, f.fallback(failed.addon))
		}
		reasons, texts = append(reasons, failed.err.Reason), append(texts, text)
	}
	if len(f.waiting) > 0 {
		text := waitsForSources + firstOf(texts)
		if len(texts) == 0 {
			text = fmt.Sprintf("Looking for the newest version of %s in %s", f.waiting[0], f.waiting[0].Line)
		}
		return newCondition(kind, metav1.ConditionUnknown, addonsv1.SourcesPendingReason, text)
	}
	for i := range sources {
		c := meta.FindStatusCondition(sources[i].Conditions, addonsv1.SourceAvailableCondition)
		switch {
		case c == nil:
		case c.Reason == addonsv1.SourceNotAskedReason:
			unasked = append(unasked, sources[i].Addon)
		case c.Status == metav1.ConditionFalse && f.failureOf(sources[i].Addon) == nil:
			reasons, texts = append(reasons, c.Reason), append(texts, c.Message)
		}
	}
	switch {
	case len(texts) > 0:
		return newCondition(kind, metav1.ConditionFalse, reasons[0], firstOf(texts))
	case len(unasked) == 0:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "")
	case len(unasked) == len(sources):
		return newCondition(kind, metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for any of them yet")
	}
	return newCondition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "No cluster has asked yet for "+message.List(unasked, ", ", shownProblems))
}

// fallback returns which version a follower has whose newest one isn't taken.
func (f *resolution) fallback(name string) string {
	pin := f.pins[name]
	if slices.ContainsFunc(f.followers, func(w stack.Follower) bool { return w.Name == name && w.HasFound(pin) }) {
		return "it stays at " + pin.Version
	}
	return fmt.Sprintf("and %s, which the spec named before, hasn't been found good either; clusters keep what they run", pin.Version)
}
