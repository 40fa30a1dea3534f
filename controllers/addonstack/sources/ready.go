// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// Report writes the SourcesReady condition by status.sources, and sends an event of what is wrong. Valid tells of a bundle that makes the
// stack invalid.
func Report(s *addonsv1.AddonStack, f *following.Resolution, events report.Events) {
	if f.Bundle != nil && following.MakesInvalid(f.Bundle.Reason) {
		return
	}
	c, before := Ready(f, s.Status.Sources), ptr.Deref(conditions.Get(s, addonsv1.SourcesReadyCondition), metav1.Condition{})
	switch {
	case isAskedAgain(s, f, before, c):
		return // what the last try came to stands until there is an answer
	case f.HasFailed():
		events.Warn(s, c, c.Reason, "Fetch")
		return
	case c.Status == metav1.ConditionFalse && (before.Status != c.Status || before.Reason != c.Reason):
		events.Send(s, corev1.EventTypeWarning, c.Reason, "Fetch", c.Message) // one, however many clusters say so
	}
	conditions.Set(s, c)
}

// isAskedAgain reports whether sources that failed before are asked again, and have said nothing yet.
func isAskedAgain(s *addonsv1.AddonStack, f *following.Resolution, before, now metav1.Condition) bool {
	isSame := before.ObservedGeneration == s.Generation
	switch {
	case now.Reason == addonsv1.SourcesPendingReason:
		hadFailed := before.Status == metav1.ConditionUnknown && before.Reason != now.Reason && before.Reason != addonsv1.SourceNotAskedReason
		return isSame && hadFailed || following.HasInvalidBundle(s)
	case now.Status == metav1.ConditionTrue && before.Status == metav1.ConditionFalse:
		return f.Polling || isSame && slices.ContainsFunc(s.Status.Sources, isPending)
	}
	return false
}

// isPending reports whether a source is being asked now.
func isPending(from addonsv1.StackSource) bool {
	return availabilityOf(&from).Reason == failure.ArtifactPending
}

func availabilityOf(from *addonsv1.StackSource) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(from.Conditions, addonsv1.SourceAvailableCondition), metav1.Condition{})
}

// Ready sums up the sources. While the spec waits, those count alone that it waits for.
func Ready(f *following.Resolution, sources []addonsv1.StackSource) metav1.Condition {
	const kind = addonsv1.SourcesReadyCondition
	var because, texts, unasked []string
	pending, asksFor := "", "The spec waits for its sources. "
	for i := range sources {
		name, c := sources[i].Addon, availabilityOf(&sources[i])
		switch {
		case f.Waits() && !f.Awaits(name):
		case c.Status == metav1.ConditionFalse:
			because, texts = append(because, c.Reason), append(texts, c.Message)
		case c.Reason == addonsv1.SourceNotAskedReason:
			unasked = append(unasked, name)
		case c.Reason == failure.ArtifactPending:
			pending = cmp.Or(pending, c.Message)
		}
	}
	if f.Bundle != nil && !following.IsOfSource(f.Bundle) && f.Bundle.Reason != failure.ArtifactPending {
		because, texts = append(because, f.Bundle.Reason), append(texts, following.OfBundle(f.Bundle))
		asksFor = "The bundle is there, but can't be used as the spec says. "
	}
	switch {
	case f.Waits():
		reason := addonsv1.SourcesPendingReason
		if len(because) > 0 {
			reason = because[max(0, slices.IndexFunc(because, stalls))]
		}
		return report.Condition(kind, metav1.ConditionUnknown, reason, asksFor+cmp.Or(report.FirstOf(texts), pending))
	case len(texts) > 0:
		return report.Condition(kind, metav1.ConditionFalse, because[0], report.FirstOf(texts))
	case len(unasked) == 0:
		return report.Condition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "")
	case len(unasked) == len(sources):
		return report.Condition(kind, metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "No cluster has asked for any of them yet")
	}
	return report.Condition(kind, metav1.ConditionTrue, addonsv1.SourcesReadyReason, "No cluster has asked yet for "+message.List(unasked, ", ", message.Few))
}

// stalls reports whether somebody has to act on a source that fails for this reason.
func stalls(reason string) bool { return reasons.Of(reason).Stalls(addonsv1.AddonPending) }
