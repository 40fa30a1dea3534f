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
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// reportSources writes the SourcesReady condition, and an event of what is wrong.
// It is about status.sources, too, which is up to date unless the spec waits.
func (r *Reconciler) reportSources(s *addonsv1.AddonStack, f *resolution) {
	c, before := sourcesReady(f, s.Status.Sources), ptr.Deref(conditions.Get(s, addonsv1.SourcesReadyCondition), metav1.Condition{})
	switch {
	case isAskedAgain(s, f, before, c):
		return // what the last try came to stands until there is an answer
	case f.firstFailed() != nil:
		r.warn(s, c, f.firstFailed().failure().Reason, "Follow")
		return
	case c.Status == metav1.ConditionFalse && (before.Status != c.Status || before.Reason != c.Reason):
		r.event(s, corev1.EventTypeWarning, c.Reason, "Fetch", c.Message) // one, however many clusters say so
	}
	conditions.Set(s, c)
}

// isAskedAgain reports whether sources that failed before are asked again, and have said nothing yet.
func isAskedAgain(s *addonsv1.AddonStack, f *resolution, before, now metav1.Condition) bool {
	polls, same := f.polling && f.firstFailed() == nil, before.ObservedGeneration == s.Generation
	switch {
	case before.Status == metav1.ConditionFalse && f.firstWaiting() == nil:
		return polls || same && now.Status == metav1.ConditionTrue && anyAsked(s.Status.Sources)
	case before.Status == metav1.ConditionUnknown && f.firstWaiting() != nil:
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
	var because, texts, unasked []string
	waitsFor := addonsv1.SourcesPendingReason
	for _, w := range f.followed {
		if failed := w.failure(); failed != nil {
			because, texts = append(because, failed.Reason), append(texts, w.problem())
			if w.waits() && reasons.Of(failed.Reason).Stalls(addonsv1.AddonPending) {
				waitsFor = failed.Reason
			}
		}
	}
	if w := f.firstWaiting(); w != nil {
		text := waitsForSources + firstOf(texts)
		if len(texts) == 0 {
			text = fmt.Sprintf("Looking for the newest version of %s in %s", w, w.Line)
		}
		return newCondition(kind, metav1.ConditionUnknown, waitsFor, text)
	}
	for i := range sources {
		c := meta.FindStatusCondition(sources[i].Conditions, addonsv1.SourceAvailableCondition)
		switch {
		case c == nil:
		case c.Reason == addonsv1.SourceNotAskedReason:
			unasked = append(unasked, sources[i].Addon)
		case c.Status == metav1.ConditionFalse:
			if w := f.of(sources[i].Addon); w == nil || w.failure() == nil {
				because, texts = append(because, c.Reason), append(texts, c.Message)
			}
		}
	}
	switch {
	case len(texts) > 0:
		return newCondition(kind, metav1.ConditionFalse, because[0], firstOf(texts))
	case len(unasked) == 0:
		return newCondition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "")
	case len(unasked) == len(sources):
		return newCondition(kind, metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for any of them yet")
	}
	return newCondition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "No cluster has asked yet for "+message.List(unasked, ", ", message.Few))
}
