// SPDX-License-Identifier: Apache-2.0

// Package addonstack reconciles AddonStacks: it validates each one, keeps every valid spec as
// a ControllerRevision, and sums up what became of it on the clusters.
package addonstack

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/history"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/rollouts"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// Reconciler reconciles AddonStacks.
type Reconciler struct {
	Client client.Client
	// APIReader reads what may be outside of the scope of the cache.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Members   *member.Inventory
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
	// Sources tell which versions there are.
	Sources *source.Sources
	// Values reads what valuesFrom names.
	Values *valuesource.Reader
	// Turns are given to clusters of stacks with a rollout.
	Turns *management.Turns
	// Clock tells when to poll.
	Clock clock.PassiveClock

	// Statuses write to the Client.
	Statuses management.Statuses

	memories memories
	wake     management.Queue // for answers of sources
}

// events returns what sends events of stacks.
func (r *Reconciler) events() report.Events { return report.Events{Recorder: r.Recorder} }

// history returns what keeps specs as revisions.
func (r *Reconciler) history() history.History {
	return history.History{Client: r.Client, APIReader: r.APIReader, Values: r.Values, Events: r.events(), WatchFilter: r.WatchFilter, Clock: r.Clock}
}

// finder returns what finds versions, and reads bundles.
func (r *Reconciler) finder() following.Finder {
	return following.Finder{Bundles: following.Bundles{Sources: r.Sources, Events: r.events()}, Clock: r.Clock}
}

// rollouts returns what brings revisions to clusters.
func (r *Reconciler) rollouts() rollouts.Rollouts {
	return rollouts.Rollouts{
		Client: r.Client, APIReader: r.APIReader, Members: r.Members, Values: r.Values,
		Turns: r.Turns, Clock: r.Clock, Events: r.events(), WatchFilter: r.WatchFilter,
	}
}

// status returns what reads and writes statuses.
func (r *Reconciler) status() sharing.Status {
	return sharing.Status{WatchFilter: r.WatchFilter, Members: r.Members, APIReader: r.APIReader, Statuses: &r.Statuses, Events: r.events()}
}
