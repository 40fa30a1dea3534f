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
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

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
