// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/health"
)

// progress is how far a revision is.
type progress struct {
	// about is the revision that the following is about, and whether it is removed.
	about subject
	// applied are those that were applied since the session began.
	applied map[record.ObjectKey]*applied
	// hooks are the hooks' objects.
	hooks map[record.HookKey]*applied
	// cleaned are the events whose hooks' objects were deleted by their policy.
	cleaned map[helmrelease.HookEvent]bool
	// deleted are those that were asked to go, are known to be gone, or were let go of.
	deleted map[record.ObjectKey]going
	// recreates is the object that is deleted to be made again; none if it is zero.
	recreates      record.ObjectKey
	recreatesSince time.Time
	// pruned says that nothing is left to be pruned.
	pruned bool
	// appliedAt is when all objects were applied, if the record doesn't say so yet; else zero.
	appliedAt time.Time
	pods      podLook
	// asDeployed are objects which the deployed revision applied just as they are wanted now.
	asDeployed map[record.ObjectKey]record.Entry
}

type subject struct {
	revision types.UID // of the record
	removing bool
}

// applied is an object as it was left, with its status when it was applied.
type applied struct {
	observe.Object
	uid     types.UID
	fields  drift.Fields // that we own
	watched bool
	left    bool // as it was: it isn't ours
}

// going is an object that was deleted and may still be there.
type going struct {
	entry  record.Entry
	object observe.Object
	since  time.Time
	// unlabelled says that the watch doesn't show the object: Helm made it.
	unlabelled bool
	// over says that nothing is to be done about it any more.
	over bool
}

// podLook is why pods of a revision's workloads didn't run when they were looked at last, and when to look again. A
// session has one. Losing it has them looked at once more.
type podLook struct {
	found *health.Finding // nil if nothing was seen
	about record.ObjectKey
	next  time.Time
}
