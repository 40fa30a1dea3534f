// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/bundle"
)

// tell says what the bundle is, and what of it isn't used.
func (r *Reconciler) tell(s *addonsv1.AddonStack, notes []string) {
	if len(notes) > 0 {
		const limit = 1000 // bytes: an event's note has up to 1024
		r.Recorder.Eventf(s, nil, corev1.EventTypeNormal, "BundleRead", "Expand", "%s", shortenTo(strings.Join(notes, "; "), limit))
	}
}

// lacksNotes says whether the status doesn't tell what the bundle is: it was in the way
// of something that was wrong. Only of a Cluster Stack release there is something to tell.
func lacksNotes(s *addonsv1.AddonStack) bool {
	return len(s.Spec.Addons) == 0 && (!conditions.IsTrue(s, addonsv1.ValidCondition) || conditions.GetMessage(s, addonsv1.ValidCondition) == "")
}

// reportValid writes the Valid condition, with what the bundle is, which stays there
// after the event is gone.
func (r *Reconciler) reportValid(s *addonsv1.AddonStack, e *expansion) {
	if e != nil || s.Spec.Source == nil {
		r.faults.setInvalid(s, "")
	}
	if e == nil || e.notes == nil {
		r.reportValidity(s, nil)
		return
	}
	const limit = 4096 // bytes: of a release with so many oddities the first tell enough
	conditions.Set(s, metav1.Condition{
		Type: addonsv1.ValidCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ValidReason,
		Message: shortenTo(strings.Join(e.notes, "; "), limit),
	})
}

// reportBundle says why the bundle can't be used; what was kept before stays in force.
// It returns when to look again, 0 if an event will tell.
func (r *Reconciler) reportBundle(s *addonsv1.AddonStack, err error) (again time.Duration, _ error) {
	if invalid, ok := errors.AsType[*bundle.Error](err); ok {
		r.reportInvalidBundle(s, addonsv1.InvalidSourceReason, invalid)
		return 0, nil
	}
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return 0, err
	}
	if makesInvalid(failed.Reason) {
		r.reportInvalidBundle(s, failed.Reason, err)
		return failed.RetryAfter, nil
	}
	switch {
	case !saysNothing(failed):
		r.faults.setInvalid(s, "")
		r.reportValidity(s, nil)
	case !hasInvalidBundle(s):
		r.faults.setInvalid(s, r.faults.lastInvalid(s))
		r.reportValidity(s, nil)
	case failed.Reason == failure.ArtifactPending:
		return whenAgain(failed), nil // nobody knows better yet
	}
	c := metav1.Condition{Type: addonsv1.SourcesReadyCondition, Status: metav1.ConditionUnknown, Reason: failed.Reason}
	if failed.Reason == failure.ArtifactPending {
		c.Reason = addonsv1.SourcesPendingReason
	}
	c.Message = "The spec waits for its bundle. " + shorten(ofBundle(err))
	if isOfPart(err, failed) {
		c.Message = "The bundle is there, but can't be used as the spec says. " + shorten(ofBundle(err))
	}
	if failed.Reason == failure.ArtifactPending {
		r.faults.remember(s)
	} else {
		r.warnOf(s, failed.Reason, "Expand", c.Message)
	}
	conditions.Set(s, c)
	return whenAgain(failed), nil
}

// whenAgain is when to look at a bundle again that couldn't be had.
func whenAgain(failed *failure.Error) time.Duration {
	if failed.Wait {
		return failed.RetryAfter
	}
	return cmp.Or(failed.RetryAfter, bundleRetry)
}

// isInvalid says whether the error is about the bundle itself: it makes the stack invalid.
func isInvalid(err error) bool {
	if _, ok := errors.AsType[*bundle.Error](err); ok {
		return true
	}
	failed, ok := errors.AsType[*failure.Error](err)
	return ok && makesInvalid(failed.Reason)
}

// makesInvalid says whether a failure for the reason is about the bundle itself.
func makesInvalid(reason string) bool {
	switch reason {
	case failure.ArtifactInvalid, failure.ArtifactRefused, failure.ArtifactTooLarge:
		return true
	}
	return false
}

// saysNothing says whether the failure leaves open what the bundle is by now.
func saysNothing(failed *failure.Error) bool {
	return failed.Again || failed.Reason == failure.ArtifactPending || failed.Reason == failure.SourceUnavailable
}

// hasInvalidBundle says whether this spec's bundle is known to be one that can't be used.
func hasInvalidBundle(s *addonsv1.AddonStack) bool {
	c := conditions.Get(s, addonsv1.ValidCondition)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == s.Generation &&
		(c.Reason == addonsv1.InvalidSourceReason || makesInvalid(c.Reason))
}

// isOfPart says whether the error is about something in the bundle, which is there itself.
func isOfPart(err error, failed *failure.Error) bool { return err.Error() != failed.Error() }

// ofBundle is the error with the field that it is about: spec.source, if it names none.
func ofBundle(err error) string {
	text := err.Error()
	if strings.HasPrefix(text, addonsv1.FollowedSource) || strings.HasPrefix(text, "addons[") {
		return text
	}
	return addonsv1.FollowedSource + ": " + text
}

// reportInvalidBundle writes the Valid condition, and an event when it turns False for
// something else than it was before.
func (r *Reconciler) reportInvalidBundle(s *addonsv1.AddonStack, reason string, err error) {
	c := metav1.Condition{
		Type: addonsv1.ValidCondition, Status: metav1.ConditionFalse, Reason: reason,
		Message: shorten(ofBundle(err)) + ". Clusters stay as they are",
	}
	if r.faults.lastInvalid(s) != c.Message {
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, c.Reason, "Expand", "%s", c.Message)
	}
	r.faults.setInvalid(s, c.Message)
	conditions.Set(s, c)
}
