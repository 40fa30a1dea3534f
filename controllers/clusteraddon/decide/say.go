// SPDX-License-Identifier: Apache-2.0

package decide

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Said are the words of an add-on's status.
type Said struct {
	Phase           addonsv1.AddonPhase
	Reason, Message string
}

// Came are the facts about a wanted add-on after a step.
type Came struct {
	// Step was done, and Said came of it. Was is in the status from before.
	Step      WantedStep
	Said, Was Said
	// SameRevision says that the status from before is about the revision of the stack that the cluster is to have.
	SameRevision bool
	// HasTurn says that the add-on got other inputs before, in a turn of its cluster.
	HasTurn bool
	// AsWanted says that the record is deployed, of the same spec and pinned values.
	AsWanted bool
	// SameInputs says that all inputs that can be read are those of the record.
	SameInputs bool
	// RepairFailed, Degraded and TermsUnwritten are wrong with an add-on that is installed; nil if they aren't.
	RepairFailed, Degraded, TermsUnwritten *Said
}

// Say returns the words for the status. What is wrong with an installed add-on is said in this order: a repair failed, a
// workload is degraded, the record's terms aren't written.
func (c Came) Say() Said {
	is := c.ofStep()
	for _, wrong := range []*Said{c.RepairFailed, c.Degraded, c.TermsUnwritten} {
		if wrong != nil && is.Phase == addonsv1.AddonReady {
			is = *wrong
		}
	}
	return is
}

// ofStep returns the words about the step alone.
func (c Came) ofStep() Said {
	is, reason := c.Said, reasons.Of(c.Said.Reason)
	waitsForRenderer, failed := is.Reason == job.ReasonWaitingForRenderer, c.Was.Phase == addonsv1.AddonFailed
	isAskedAgain := is.Reason == failure.ArtifactPending && reasons.Of(c.Was.Reason).Is(reasons.SourceBad)
	switch {
	case c.Step == AwaitResume && failed: // a pause heals nothing
		return c.Was
	case is.Reason == reasons.WaitingForOtherClusters && c.HasTurn: // it failed with the inputs before
		return c.Was
	case is.Reason == reasons.WaitingForOtherClusters, c.Step == KeepReplaced:
		is.Phase = addonsv1.AddonReady
	case waitsForRenderer && c.AsWanted && c.Was.Phase != addonsv1.AddonPending: // as it was found before
		return c.Was
	case failed && c.SameRevision && (waitsForRenderer || isAskedAgain): // until the source or the renderer has an answer
		return c.Was
	case reason.Is(reasons.SourceFailed) && c.AsWanted && c.SameInputs: // a source that is down changes nothing on a cluster
		is.Phase, is.Message = addonsv1.AddonReady, "Installed; its source can't be read now: "+is.Message
	}
	return is
}
