// SPDX-License-Identifier: Apache-2.0

package following

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// lacksNotes reports whether the status doesn't tell what the bundle is: something was
// wrong, and took its place. Only of a Cluster Stack release there is something to tell.
func lacksNotes(s *addonsv1.AddonStack) bool {
	return len(s.Spec.Addons) == 0 && (!conditions.IsTrue(s, addonsv1.ValidCondition) || conditions.GetMessage(s, addonsv1.ValidCondition) == "")
}

// OfBundle returns the text of a failure with the field that it is about: spec.source, if it names none.
func OfBundle(failed *failure.Error) string {
	if failed.Field == "" {
		return addonsv1.FollowedSource + ": " + failed.Error()
	}
	return failed.Error()
}

// TriedAgainIn returns when a bundle is tried again that can't be used, 0 if an event tells.
func TriedAgainIn(failed *failure.Error) time.Duration {
	if failed.Wait || MakesInvalid(failed.Reason) {
		return failed.RetryAfter
	}
	return cmp.Or(failed.RetryAfter, retry.Source)
}

// MakesInvalid reports whether a failure is about the bundle itself, and makes the stack invalid.
func MakesInvalid(reason string) bool {
	switch reason {
	case addonsv1.InvalidSourceReason, failure.ArtifactInvalid, failure.ArtifactRefused, failure.ArtifactTooLarge:
		return true
	}
	return false
}

// IsInconclusive reports whether the failure leaves open what the bundle is by now.
func IsInconclusive(failed *failure.Error) bool {
	return failed.Again || failed.Reason == failure.ArtifactPending || failed.Reason == failure.SourceUnavailable || failed.Reason == failure.SourceUntrusted
}

// HasInvalidBundle reports whether this spec's bundle is known to be one that can't be used.
func HasInvalidBundle(s *addonsv1.AddonStack) bool {
	c := conditions.Get(s, addonsv1.ValidCondition)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == s.Generation && MakesInvalid(c.Reason)
}
