// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"strings"
	"time"

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

// reportValid writes the Valid condition, with what the bundle is, or what is wrong with it. While nobody can tell what an
// invalid bundle is by now, the condition stays.
func (r *Reconciler) reportValid(s *addonsv1.AddonStack, e *expansion, failed *failure.Error) {
	switch {
	case failed != nil && makesInvalid(failed.Reason):
		r.reportInvalid(s, failed.Reason, "Expand", message.Shorten(ofBundle(failed), maxProblem))
	case failed != nil && isInconclusive(failed) && hasInvalidBundle(s):
	case e == nil:
		setValid(s, "")
	default:
		setValid(s, message.Shorten(strings.Join(e.Notes, "; "), maxNotes))
	}
}

// triedAgainIn returns when a bundle is tried again that can't be used, 0 if an event tells.
func triedAgainIn(failed *failure.Error) time.Duration {
	if failed.Wait || makesInvalid(failed.Reason) {
		return failed.RetryAfter
	}
	return cmp.Or(failed.RetryAfter, retry.Source)
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

// ofBundle returns the text of a failure with the field that it is about: spec.source, if it names none.
func ofBundle(failed *failure.Error) string {
	if failed.Field == "" {
		return addonsv1.FollowedSource + ": " + failed.Error()
	}
	return failed.Error()
}
