// SPDX-License-Identifier: Apache-2.0

// Package addonstack reconciles AddonStacks: it validates each one, keeps every valid spec as
// a ControllerRevision, and sums up what became of it on the clusters.
package addonstack

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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

	statuses management.Statuses
	memories sync.Map         // client.ObjectKey to *memory
	wake     management.Queue // for answers of sources
}

// errStale is returned if what the cache shows isn't so any more.
var errStale = apierrors.NewConflict(addonsv1.GroupVersion.WithResource("addonstacks").GroupResource(), "",
	errors.New("the cache is behind"))
