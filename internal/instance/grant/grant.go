// SPDX-License-Identifier: Apache-2.0

// Package grant decides which instance gets its scope, so that no two that run at the same time
// manage one object. A [Memory] knows who is silent, and [Memory.Evaluate] has the rules. Why they are
// safe with several processes that grant: docs/design/instances.md.
package grant

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// IsExpired reports whether the shared deployment has said that an instance is gone. Its next
// heartbeat takes that back.
func IsExpired(pi *addonsv1.ProviderInstance) bool {
	return conditions.GetReason(pi, addonsv1.ReadyCondition) == addonsv1.HeartbeatExpiredReason
}

// isTaken reports whether an instance keeps others from its scope. The grant of a previous holder
// does so, too, until the next one has an answer of its own.
func isTaken(pi *addonsv1.ProviderInstance) bool {
	return pi.Spec.Claim == addonsv1.ScopeClaiming && (has(pi, addonsv1.GrantGranted) || has(pi, addonsv1.GrantReserved))
}

func has(pi *addonsv1.ProviderInstance, state addonsv1.GrantState) bool {
	return pi.Status.Grant != nil && pi.Status.Grant.State == state
}

// isWanted reports whether an instance waits for its scope.
func isWanted(pi *addonsv1.ProviderInstance) bool {
	return pi.Spec.Claim == addonsv1.ScopeClaiming && pi.DeletionTimestamp.IsZero() && !IsExpired(pi) && !pi.HoldsScope()
}

// expired returns a silent instance without its scope, and with what is known of it.
func expired(pi *addonsv1.ProviderInstance, now time.Time) *addonsv1.ProviderInstance {
	pi = pi.DeepCopy()
	if isTaken(pi) {
		pi.Status.Grant = &addonsv1.ScopeGrant{Holder: pi.Spec.Holder, State: addonsv1.GrantExpired}
	}
	last := "No heartbeat at all"
	if at := pi.Status.HeartbeatTime; !at.IsZero() {
		last = "No heartbeat since " + at.UTC().Format(time.RFC3339)
	}
	conditions.Set(pi, metav1.Condition{
		Type: addonsv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.HeartbeatExpiredReason,
		Message: fmt.Sprintf("%s (it expires after %d s): process %s ended without a word, or can't reach the API server. "+
			"Its scope is free. If it isn't to come back: kubectl delete providerinstance -n %s %s", last, pi.Spec.ExpirySeconds, pi.Spec.Holder, pi.Namespace, pi.Name),
		ObservedGeneration: pi.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
	return pi
}

// answer returns the next answer to the claim of an instance. others are all that may run beside it.
func answer(pi *addonsv1.ProviderInstance, others []*addonsv1.ProviderInstance) *addonsv1.ScopeGrant {
	var rivals []*addonsv1.ProviderInstance
	for _, other := range others {
		if isTaken(other) && !isSame(pi, other) && instance.ScopeOf(&pi.Spec).Overlaps(instance.ScopeOf(&other.Spec)) {
			rivals = append(rivals, other)
		}
	}
	slices.SortFunc(rivals, func(a, b *addonsv1.ProviderInstance) int {
		return cmp.Or(cmp.Compare(a.Status.Grant.State, b.Status.Grant.State), // Granted before Reserved
			cmp.Compare(keyOf(a), keyOf(b)))
	})
	next := &addonsv1.ScopeGrant{Holder: pi.Spec.Holder, State: addonsv1.GrantReserved}
	reserved := has(pi, addonsv1.GrantReserved) && pi.Status.Grant.Holder == pi.Spec.Holder
	switch {
	case reserved && len(rivals) == 0:
		next.State = addonsv1.GrantGranted
	case len(rivals) == 0, reserved && has(rivals[0], addonsv1.GrantReserved) && keyOf(pi) < keyOf(rivals[0]): // the others step back
	default:
		next.State, next.Message = addonsv1.GrantRefused, taken(pi, rivals)
	}
	return next
}

// isSame reports whether two objects are of one process, or of processes that a lease keeps apart. Two of one
// name are a deleted one, and the one that was made again.
func isSame(a, b *addonsv1.ProviderInstance) bool {
	return a.UID == b.UID || keyOf(a) == keyOf(b) &&
		(a.Spec.Holder == b.Spec.Holder || a.Spec.LeaseName != "" && a.Spec.LeaseName == b.Spec.LeaseName)
}

// taken says who has a scope that overlaps, and when it is free. The text becomes the message of a
// condition, so it stays the same as long as that does.
func taken(pi *addonsv1.ProviderInstance, rivals []*addonsv1.ProviderInstance) string {
	rival := rivals[0]
	theirs := instance.ScopeOf(&rival.Spec)
	shared, _ := theirs.Intersection(instance.ScopeOf(&pi.Spec))
	verb, more := "holds", ""
	if has(rival, addonsv1.GrantReserved) {
		verb = "claims"
	}
	if n := len(rivals) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more overlap", n)
	}
	text := fmt.Sprintf("ProviderInstance %s (%s; version %s) %s %s%s. ", keyOf(rival), theirs.Describe(), rival.Spec.Version, verb, shared.Describe(), more)
	if !rival.DeletionTimestamp.IsZero() {
		return text + fmt.Sprintf("That object was deleted without its process; the scope is free %s after its last heartbeat", expiry(rival))
	}
	return text + fmt.Sprintf("The scope is free when that instance ends, or %s after its last heartbeat; or start this one with another --namespace or --watch-filter", expiry(rival))
}

func expiry(pi *addonsv1.ProviderInstance) time.Duration {
	return time.Duration(pi.Spec.ExpirySeconds) * time.Second
}

func keyOf(pi *addonsv1.ProviderInstance) string { return client.ObjectKeyFromObject(pi).String() }
