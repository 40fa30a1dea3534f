// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// reportSources writes the SourcesReady condition, and an event of what is wrong.
// It is about status.sources, too, which is up to date unless the spec waits.
func (r *Reconciler) reportSources(s *addonsv1.AddonStack, f *resolution) {
	if conditions.IsFalse(s, addonsv1.SourcesReadyCondition) && f.polling && len(f.waiting) == 0 && len(f.failures) == 0 {
		return // nobody knows better yet
	}
	c, m := sourcesReady(f, s.Status.Sources), r.memoryOf(s)
	last := m.lastFault(s, c.Type)
	switch {
	case len(f.failures) > 0:
		r.warn(s, newCondition(c.Type, c.Status, f.failures[0].err.Reason, c.Message), "Follow")
	case c.Status == metav1.ConditionFalse && last.reason != c.Reason:
		r.warn(s, c, "Fetch")
	case c.Status == metav1.ConditionFalse: // one event is enough, however many clusters say so
		m.faults[c.Type] = fault{c.Reason, c.Message}
	case c.Status == metav1.ConditionTrue && !anyAsked(s.Status.Sources):
		m.faults[c.Type] = fault{}
	default:
		m.faults[c.Type] = last
	}
	conditions.Set(s, c)
}

// anyAsked reports whether a source is being asked now.
func anyAsked(sources []addonsv1.StackSource) bool {
	return slices.ContainsFunc(sources, func(from addonsv1.StackSource) bool {
		c := meta.FindStatusCondition(from.Conditions, addonsv1.SourceAvailableCondition)
		return c != nil && c.Reason == failure.ArtifactPending
	})
}

// sourcesReady makes the condition from what polls for versions came to, and, if that is
// settled, from what the clusters say of their sources.
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
		message := "The spec waits for its sources. " + firstOf(texts)
		if len(texts) == 0 {
			message = fmt.Sprintf("Looking for the newest version of %s in %s", f.waiting[0], f.waiting[0].Line)
		}
		return newCondition(kind, metav1.ConditionUnknown, addonsv1.SourcesPendingReason, message)
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

// fallback says which version a follower has whose newest one isn't taken.
func (f *resolution) fallback(name string) string {
	pin := f.pins[name]
	if slices.ContainsFunc(f.followers, func(w stack.Follower) bool { return w.Name == name && w.HasFound(pin) }) {
		return "it stays at " + pin.Version
	}
	return fmt.Sprintf("and %s, which the spec named before, hasn't been found good either; clusters keep what they run", pin.Version)
}
