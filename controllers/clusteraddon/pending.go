// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// toldBy is the status that events are about by now. An add-on that somebody was told
// of keeps that while its source is asked again: what then comes out is no news if it
// is the same.
func toldBy(before, after *addonsv1.ClusterAddonStatus) addonsv1.ClusterAddonStatus {
	told := *after.DeepCopy()
	for i, s := range told.Addons {
		was := formerOf(s, before.Addons)
		if isPendingOn(was, mendable) && isPendingOn(s, passing) && was.Revision == s.Revision {
			told.Addons[i] = was
		}
	}
	return told
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
