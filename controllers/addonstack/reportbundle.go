// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// maxNotes is how much of a bundle's notes a message has.
const maxNotes = 4096 // bytes

// lacksNotes reports whether the status doesn't tell what the bundle is: something was
// wrong, and took its place. Only of a Cluster Stack release there is something to tell.
func lacksNotes(s *addonsv1.AddonStack) bool {
	return len(s.Spec.Addons) == 0 && (!conditions.IsTrue(s, addonsv1.ValidCondition) || conditions.GetMessage(s, addonsv1.ValidCondition) == "")
}

// reportValid writes the Valid condition, with what the bundle is.
func reportValid(s *addonsv1.AddonStack, e *expansion) {
	notes := ""
	if e != nil {
		notes = message.Shorten(strings.Join(e.Notes, "; "), maxNotes)
	}
	setValid(s, notes)
}

// reportNoBundle writes why the bundle can't be used, and notes in the resolution when to try again. An error about
// something else is returned.
func (r *Reconciler) reportNoBundle(s *addonsv1.AddonStack, f *resolution, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	switch {
	case failed.Reason == addonsv1.InvalidSourceReason:
		err = failed // its text alone, not where in the bundle it was met
	case !isOfPart(err, failed):
		f.bundle = failed
	}
	problem, isPending := message.Shorten(ofBundle(err), maxProblem), failed.Reason == failure.ArtifactPending
	if makesInvalid(failed.Reason) {
		f.again = retry.Sooner(failed.RetryAfter, f.again)
		r.reportInvalid(s, failed.Reason, "Expand", problem)
		if len(f.followed) > 0 {
			r.reportSources(s, f)
		}
		return nil
	}
	again := failed.RetryAfter
	if !failed.Wait { // else an event tells
		again = cmp.Or(again, retry.Source)
	}
	f.again = retry.Sooner(again, f.again)
	if !isInconclusive(failed) || !hasInvalidBundle(s) {
		setValid(s, "")
	}
	if isPending && (hasInvalidBundle(s) || failedBefore(s)) {
		return nil // what the last try came to stands until there is an answer
	}
	c := newCondition(addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, failed.Reason, "The spec waits for its bundle. "+problem)
	if isOfPart(err, failed) {
		c.Message = "The bundle is there, but can't be used as the spec says. " + problem
	}
	if isPending {
		c.Reason = addonsv1.SourcesPendingReason
		conditions.Set(s, c)
	} else {
		r.warn(s, c, c.Reason, "Expand")
	}
	return nil
}

// failedBefore reports whether the last try to have this spec's bundle failed.
func failedBefore(s *addonsv1.AddonStack) bool {
	c := conditions.Get(s, addonsv1.SourcesReadyCondition)
	return c != nil && c.Status == metav1.ConditionUnknown && c.ObservedGeneration == s.Generation &&
		c.Reason != addonsv1.SourcesPendingReason && c.Reason != addonsv1.SourceNotAskedReason
}

// makesInvalid reports whether a failure is about the bundle itself, and makes the stack invalid.
func makesInvalid(reason string) bool {
	switch reason {
	case addonsv1.InvalidSourceReason, failure.ArtifactInvalid, failure.ArtifactRefused, failure.ArtifactTooLarge:
		return true
	}
	return false
}

// isInconclusive reports whether the failure leaves open what the bundle is by now.
func isInconclusive(failed *failure.Error) bool {
	return failed.Again || failed.Reason == failure.ArtifactPending || failed.Reason == failure.SourceUnavailable || failed.Reason == failure.SourceUntrusted
}

// hasInvalidBundle reports whether this spec's bundle is known to be one that can't be used.
func hasInvalidBundle(s *addonsv1.AddonStack) bool {
	c := conditions.Get(s, addonsv1.ValidCondition)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == s.Generation && makesInvalid(c.Reason)
}

// isOfPart reports whether the error is about something in the bundle, which is there itself.
func isOfPart(err error, failed *failure.Error) bool { return err.Error() != failed.Error() }

// ofBundle returns the error with the field that it is about: spec.source, if it names none.
func ofBundle(err error) string {
	text := err.Error()
	if strings.HasPrefix(text, addonsv1.FollowedSource) || strings.HasPrefix(text, "addons[") {
		return text
	}
	return addonsv1.FollowedSource + ": " + text
}
