// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Deeds are what was done in a reconcile, for events and metrics.
type Deeds struct {
	Deliveries []Delivery
	// Repaired and Left are how many objects weren't as they were applied, by what came of it.
	Repaired, Left int
	// ReadyAfter is how long add-ons took until they were Ready.
	ReadyAfter []time.Duration
	Events     []Event
	// Changes are those of add-ons, the oldest first, without a time.
	Changes []addonsv1.AddonChange
}

func (d Deeds) with(other Deeds) Deeds {
	return Deeds{
		Deliveries: slices.Concat(d.Deliveries, other.Deliveries), Repaired: d.Repaired + other.Repaired, Left: d.Left + other.Left,
		ReadyAfter: slices.Concat(d.ReadyAfter, other.ReadyAfter), Events: slices.Concat(d.Events, other.Events),
		Changes: slices.Concat(d.Changes, other.Changes),
	}
}

// Actions on an add-on.
const (
	Install = "install"
	Upgrade = "upgrade"
	Remove  = "remove"
	Repair  = "repair"
)

// Delivery is an action on an add-on, and what came of it.
type Delivery struct{ Action, Outcome string }

// Delivers notes an action on an add-on, with what came of it.
func (d *Deeds) Delivers(action string, outcome deliver.Outcome, err error) {
	came := cmp.Or(string(outcome.Phase), "Gone")
	if err != nil {
		came = "Error"
	}
	d.Deliveries = append(d.Deliveries, Delivery{action, came})
}

// Changed notes a change of an add-on, which has a version and a revision of its release from then on.
func (d *Deeds) Changed(addon addonsv1.AddonStatus, cause addonsv1.ChangeCause, from, to string, revision int) {
	d.Changes = append(d.Changes, addonsv1.AddonChange{
		Addon: addon.Name, Namespace: addon.Namespace, Stack: addon.Stack, Cause: cause, From: from, To: to, Revision: int32(revision),
	})
}

// Event is something that happened to a ClusterAddon, or to one of its add-ons.
type Event struct {
	Kind, Reason, Action, Note string
	Addon                      *addonsv1.AddonStatus // nil: the cluster as a whole
}
