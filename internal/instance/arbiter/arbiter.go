// SPDX-License-Identifier: Apache-2.0

// Package arbiter decides which instance gets its scope, so that no two that run at the same time
// manage one object. It runs in the process that serves the webhooks. An [Observer] knows who
// is alive, judge has the rules. Why the protocol is safe: docs/design/instances.md.
package arbiter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// Arbiter decides about ProviderInstances, by what is stored and by who is alive.
type Arbiter struct {
	reader   client.Reader
	observer *Observer
}

// New returns an arbiter. The reader must not be a cache: the protocol needs consistent answers.
func New(reader client.Reader, observer *Observer) *Arbiter {
	return &Arbiter{reader: reader, observer: observer}
}

// Judge returns why an object may not be stored, nil if it may. before is nil for a new one.
func (a *Arbiter) Judge(ctx context.Context, before, after *addonsv1.ProviderInstance) (*instance.Refusal, error) {
	if before != nil && harmless(before, after) {
		return nil, nil
	}
	asOf := a.observer.clock.Now()
	list := &addonsv1.ProviderInstanceList{}
	if err := a.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ProviderInstances, to compare scopes: %w", err)
	}
	return judge(before, after, a.observer.Listed(list.Items, asOf)), nil
}

// harmless reports whether a write takes nothing from others, as of labels, or of a claim given up.
func harmless(before, after *addonsv1.ProviderInstance) bool {
	if before == nil {
		return after.Spec.Claim == addonsv1.ScopeWaiting
	}
	return equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		after.Spec.Claim == addonsv1.ScopeWaiting && after.Spec.Holder == before.Spec.Holder
}

// judge returns why an object may not be stored, nil if it may. known is all that is stored.
func judge(before, after *addonsv1.ProviderInstance, known []Known) *instance.Refusal {
	if before == nil {
		if refusal := judgeNumber(after, known); refusal != nil {
			return refusal
		}
	}
	if harmless(before, after) {
		return nil
	}
	if refusal := judgeHolder(before, after, known); refusal != nil {
		return refusal
	}
	if after.Spec.Claim == addonsv1.ScopeWaiting {
		return nil
	}
	if refusal := judgeOrder(before, after); refusal != nil {
		return refusal
	}
	return judgeScope(after, known)
}

// maxInNamespace is how many instances a namespace may have, with those that were deleted lately.
const maxInNamespace = 64

func judgeNumber(after *addonsv1.ProviderInstance, known []Known) *instance.Refusal {
	number := 0
	for _, k := range known {
		if k.Instance.Namespace == after.Namespace {
			number++
		}
	}
	if number < maxInNamespace {
		return nil
	}
	return &instance.Refusal{Cause: instance.TooManyInstances, Field: "metadata.namespace", Message: fmt.Sprintf(
		"namespace %s has %d ProviderInstances, the most that one may have. Delete those that nothing runs for; one that claimed a scope counts until it would have expired",
		after.Namespace, number)}
}

// judgeHolder keeps an object for the process that writes it, while it lives.
func judgeHolder(before, after *addonsv1.ProviderInstance, known []Known) *instance.Refusal {
	if before == nil || before.Spec.Holder == after.Spec.Holder || sameLease(before, after) {
		return nil
	}
	for _, k := range known {
		if k.Instance.UID == before.UID && k.Remaining > 0 {
			return &instance.Refusal{Cause: instance.NameTaken, Field: "spec.holder", Message: fmt.Sprintf(
				"process %s (version %s) is alive and writes the ProviderInstance of this name. It is free %s after the last heartbeat of that process."+
					" If both are to run, give this one another --instance-name, or another namespace to run in",
				before.Spec.Holder, before.Spec.Version, expiry(before))}
		}
	}
	return nil
}

// judgeOrder sees to it that a holder's Claiming is stored before it asks to be Active.
func judgeOrder(before, after *addonsv1.ProviderInstance) *instance.Refusal {
	outOfOrder := func(message string) *instance.Refusal {
		return &instance.Refusal{Cause: instance.ClaimOutOfOrder, Field: "spec.claim", Message: message}
	}
	switch {
	case !after.DeletionTimestamp.IsZero():
		return outOfOrder("the object is being deleted: only Waiting is possible")
	case after.Spec.Claim == addonsv1.ScopeClaiming:
		return nil
	case before == nil || before.Spec.Claim == addonsv1.ScopeWaiting:
		return outOfOrder("must be Claiming before it is Active")
	case before.Spec.Holder != after.Spec.Holder:
		return outOfOrder("another holder must be Claiming before it is Active")
	case !instance.ScopeOf(&before.Spec).Equal(instance.ScopeOf(&after.Spec)):
		return outOfOrder("another scope (namespaces, watchFilter) must be Claiming before it is Active")
	case before.Spec.LeaseName != after.Spec.LeaseName || before.Spec.ExpirySeconds != after.Spec.ExpirySeconds:
		return outOfOrder("leaseName and expirySeconds change only with claim Waiting or Claiming")
	}
	return nil
}

// judgeScope refuses what another live instance claims or holds.
func judgeScope(after *addonsv1.ProviderInstance, known []Known) *instance.Refusal {
	var rivals []Known
	for _, k := range known {
		if k.Remaining > 0 && k.Instance.Spec.Claim != addonsv1.ScopeWaiting && !same(k, after) &&
			instance.ScopeOf(&k.Instance.Spec).Overlaps(instance.ScopeOf(&after.Spec)) {
			rivals = append(rivals, k)
		}
	}
	if len(rivals) == 0 {
		return nil
	}
	slices.SortFunc(rivals, func(a, b Known) int {
		return cmp.Or(
			cmp.Compare(a.Instance.Spec.Claim, b.Instance.Spec.Claim), // Active before Claiming
			cmp.Compare(keyOf(a.Instance).String(), keyOf(b.Instance).String()),
		)
	})
	return scopeTaken(after, rivals)
}

// same reports whether a known instance is the one that asks. The process of a deleted object may
// still run, unless it is the one that asks, or the lease excludes it.
func same(k Known, after *addonsv1.ProviderInstance) bool {
	if keyOf(k.Instance) != keyOf(after) {
		return false
	}
	return !k.Deleted || k.Instance.Spec.Holder == after.Spec.Holder || sameLease(k.Instance, after)
}

func sameLease(a, b *addonsv1.ProviderInstance) bool {
	return a.Spec.LeaseName != "" && a.Spec.LeaseName == b.Spec.LeaseName
}

// scopeTaken refuses a scope that overlaps, and says who has it and when it is free. The text
// becomes the message of a condition, so it stays the same as long as that does.
func scopeTaken(after *addonsv1.ProviderInstance, rivals []Known) *instance.Refusal {
	rival := rivals[0].Instance
	theirs := instance.ScopeOf(&rival.Spec)
	shared, _ := theirs.Intersection(instance.ScopeOf(&after.Spec))

	has := "holds"
	if rival.Spec.Claim == addonsv1.ScopeClaiming {
		has = "claims"
	}
	more := ""
	if n := len(rivals) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more overlap", n)
	}
	message := fmt.Sprintf("ProviderInstance %s (%s; version %s) %s %s%s. ", keyOf(rival), theirs.Describe(), rival.Spec.Version, has, shared.Describe(), more)
	if rivals[0].Deleted {
		message += fmt.Sprintf("That object was deleted without its process; the scope is free %s after its last heartbeat", expiry(rival))
	} else {
		message += fmt.Sprintf("The scope is free when that instance ends, or %s after its last heartbeat; or start this one with another --namespace or --watch-filter", expiry(rival))
	}
	return &instance.Refusal{Cause: instance.ScopeTaken, Field: "spec.claim", Message: message}
}

func keyOf(pi *addonsv1.ProviderInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: pi.Namespace, Name: pi.Name}
}
