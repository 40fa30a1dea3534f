// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/health"
)

// Parts of a session: how far each object, hook and removal is.

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

// seen returns what was seen of the pods, as words to put in front of a message, and its reason or else the given one.
func (p *podLook) seen(reason string) (_, words string) {
	if p.found == nil {
		return reason, ""
	}
	return p.found.Reason, p.about.String() + ": " + p.found.Message + ". "
}
