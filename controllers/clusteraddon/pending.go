// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// toldBy is the status that events are about by now. An add-on that somebody was told
// of keeps that while its source is asked again, or its cluster is: what then comes out
// is no news if it is the same. What another stack had isn't its own.
func toldBy(before, after *addonsv1.ClusterAddonStatus) addonsv1.ClusterAddonStatus {
	told := *after.DeepCopy()
	for i, s := range told.Addons {
		was := formerOf(s, before.Addons)
		if was.Stack == s.Stack && was.Revision == s.Revision && waitsWith(was, s) {
			told.Addons[i] = was
		}
	}
	return told
}

// waitsWith says whether what was told of an add-on may still be so after it has waited.
func waitsWith(told, s addonsv1.AddonStatus) bool {
	if s.Reason == ReasonRetrying && s.Phase == told.Phase {
		return true
	}
	return isPendingOn(s, passing) && (isPendingOn(told, mendable) || told.Phase == addonsv1.AddonFailed && told.Reason != ReasonRetrying)
}

func isPendingOn(s addonsv1.AddonStatus, kind func(reason string) bool) bool {
	return s.Phase == addonsv1.AddonPending && kind(s.Reason)
}

// mendable says whether an add-on that is Pending for the reason goes on only after
// somebody has done something.
func mendable(reason string) bool { return !passing(reason) }

// passing says whether the reason goes away by itself. Of a source that is down the
// AddonStack tells, once for all clusters.
func passing(reason string) bool {
	switch reason {
	case "", failure.ArtifactPending, failure.ArtifactChanged, failure.SourceUnavailable,
		ReasonWaitingForDependency, ReasonWaitingForPrecondition, ReasonWaitingForDependent, ReasonWaitingForSuccessor,
		ReasonStackUndecided, ReasonRetrying,
		deliver.ReasonReady, deliver.ReasonReleaseLocked, deliver.ReasonRunningHook, deliver.ReasonWaitingForCRDs, deliver.ReasonWaitingForObjects,
		deliver.ReasonWaitingForDeletion, deliver.ReasonWaitingForPostcondition, deliver.ReasonWaitingForWebhook:
		return true
	}
	return false
}
