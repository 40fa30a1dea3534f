// SPDX-License-Identifier: Apache-2.0

// Package clusteraddon brings the add-ons of one workload cluster to the state in its ClusterAddon:
// it installs, upgrades and removes them, and tells in the status how far it got.
//
// A reconcile never waits. It does what can be done now, and returns; an event
// (an object became ready, a connection was made, an input changed) starts the
// next one. The installed add-ons are read from the release records in the workload cluster, never
// from the status.
package clusteraddon

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/lanes"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// reconcileTimeout bounds one reconcile. The next one continues by the records.
const reconcileTimeout = 3 * time.Minute

// Parts are what the reconciler works with.
type Parts struct {
	// Client reads from the management cluster's cache, and writes.
	Client client.Client
	// APIReader reads from the management cluster directly.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Members   *member.Inventory
	Fleet     *fleet.Provider
	Sources   *source.Sources
	Renderer  *render.Renderer
	// Values reads what valuesFrom names.
	Values    *valuesource.Reader
	Deliverer *deliver.Deliverer
	// Memory is where what is kept of add-ons counts.
	Memory *budget.Budget
	// Queue starts reconciles from events outside of the management cluster.
	Queue *Queue
	Clock clock.Clock
	// RequireImpersonation uses the rights of Clusters' kubeconfigs for records alone.
	RequireImpersonation bool
}

// Reconciler reconciles ClusterAddons.
type Reconciler struct {
	Parts

	records  *fleetwatch.Records
	kinds    *fleetwatch.Kinds
	watched  *fleetwatch.Objects
	provider *management.Objects
	users    inputs.References
	lanes    *lanes.Lanes
	beside   *delivery.Beside
	contents *budget.Cache[string, sets.Set[deliver.ObjectKey]] // see removal.Contents
	statuses management.Statuses
	memories sync.Map // client.ObjectKey to *remembered

	inputTurns delivery.InputTurns
}

// Queue lets others start a reconcile of a ClusterAddon.
type Queue struct {
	management.Queue
	Names member.Names
}

// AddCluster enqueues the ClusterAddon of a workload cluster.
func (q *Queue) AddCluster(name multicluster.ClusterName) {
	if key, ok := q.Names.ClusterAddon(name); ok {
		q.Add(key)
	}
}

// AddBegunCluster does so when what its delivery waited for has come. It goes first. Else all clusters
// of a fleet would be begun before one is done, and what is kept of a delivery would be kept of all of them.
func (q *Queue) AddBegunCluster(name string) {
	if key, ok := q.Names.ClusterAddon(multicluster.ClusterName(name)); ok {
		q.AddBegun(key)
	}
}
