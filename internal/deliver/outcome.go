// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
)

// Outcome is where an add-on stands after Ensure or Remove. It is the same each
// time for the same state, so that writing it to a status causes no event.
type Outcome struct {
	Phase addonsv1.AddonPhase
	// Reason is one of the Reason constants, or that of a rendering error.
	Reason string
	// Message names the object, what the server said, and the way out. It never
	// contains what is in a Secret.
	Message string
	// Gone says that the add-on was removed. Phase is empty then.
	Gone bool

	// Version of the chart, and Revision of the release.
	Version  string
	Revision int32
	// Proof is the proof of the newest record, if that record is proven, or has been written by the call. Else it is
	// the given proof. A caller that keeps it where the cluster can't write has to give it to the next call.
	Proof string
	// Kinds are the kinds of its objects, as a [Summary] has them, once it is ready.
	Kinds string
	// Total is the number of objects. Ready is the number of objects that are applied and ready.
	Total, Ready int32
	// Untouched says that none of its objects was applied yet, and none belongs to it for another reason.
	Untouched bool
	// Found is how the objects were found when the add-on became Ready, if that was just now.
	Found map[ObjectKey]observe.Status

	// Applied says that each object was applied, and none refused: what the add-on has in
	// common with one that leaves is its own now.
	Applied bool
	// Tried says that each object was tried, whatever the API server said of it.
	Tried bool

	// RetryAfter is when to call again at the latest. Zero: an event will tell.
	RetryAfter time.Duration
	// Recorded is the new revision that the call recorded, nil if it recorded none.
	Recorded *Summary
}

// Reasons of an Outcome. They are stable API.
const (
	// ReasonReady: installed as wanted, and was ready.
	ReasonReady = "Ready"

	// Waiting for the cluster.

	// ReasonWaitingForMemory: others have the memory that the add-on, or an answer of the cluster, needs.
	ReasonWaitingForMemory = "WaitingForMemory"

	// ReasonRollingBack: an upgrade failed, and what was deployed before is installed again.
	ReasonRollingBack = "RollingBack"

	// Needs a change by somebody.

	// ReasonRolledBack: an upgrade failed, and what was deployed before is installed again.
	ReasonRolledBack = "RolledBack"

	// ReasonRecordTooLarge: the release record doesn't fit in the cluster.
	ReasonRecordTooLarge = "RecordTooLarge"
	// ReasonRecordUnreadable: the release record can't be decoded.
	ReasonRecordUnreadable = "RecordUnreadable"
	// ReasonAnswerInvalid: the API server's answer lacks what each API server gives.
	ReasonAnswerInvalid = "AnswerInvalid"
	// ReasonInternalError: a fault of Chandler's, which the log tells of.
	ReasonInternalError = "InternalError"

	// Of steps, whose packages say when.

	ReasonRunningHook             = outcome.ReasonRunningHook
	ReasonWaitingForObjects       = outcome.ReasonWaitingForObjects
	ReasonWaitingForPostcondition = outcome.ReasonWaitingForPostcondition
	ReasonObjectFailed            = outcome.ReasonObjectFailed
	ReasonReadinessTimeout        = outcome.ReasonReadinessTimeout
	ReasonHookFailed              = outcome.ReasonHookFailed
	ReasonPruneFailed             = outcome.ReasonPruneFailed
	ReasonReleaseLocked           = revision.ReasonReleaseLocked
	ReasonInputReplaced           = revision.ReasonInputReplaced
	ReasonReleaseExists           = revision.ReasonReleaseExists
	ReasonReleaseOwnedByOther     = revision.ReasonReleaseOwnedByOther
	ReasonReleaseTakenOver        = revision.ReasonReleaseTakenOver
	ReasonReadinessInvalid        = revision.ReasonReadinessInvalid
	ReasonEmptyRendering          = revision.ReasonEmptyRendering
	ReasonAddonTooLarge           = memory.ReasonTooLarge
)
