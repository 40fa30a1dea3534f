// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// addonMemory is what this process remembers of one add-on of a cluster.
//
// Key: the release.
// Bound: until the add-on is neither wanted nor installed.
// Lost with it: some looks and pauses more, and less time is measured.
type addonMemory struct {
	checks checks.Memory
	// agreed are optional sources of values without which somebody lets the add-on go on. Losing one asks once more.
	agreed sets.Set[string]
	// began is since when the add-on is worked on, and isn't Ready; zero if it isn't.
	began time.Time
	// leavingSince is since when the add-on waits for others that may take over its objects; zero if it isn't to leave.
	leavingSince time.Time
	// drift is what is known of changes by others, health what was seen of workloads.
	drift  driftMemory
	health healthMemory
}

func newAddonMemory() *addonMemory {
	return &addonMemory{
		agreed: sets.New[string](),
		drift:  newDriftMemory(), health: healthMemory{objects: map[deliver.ObjectKey]objectHealth{}},
	}
}

// time measures how long the add-on takes from the first reconcile that works on it to Ready.
func (m *addonMemory) time(phase addonsv1.AddonPhase, reconcile, now time.Time) {
	if m.began.IsZero() {
		m.began = reconcile
	}
	if phase == addonsv1.AddonReady {
		readySeconds.Observe(now.Sub(m.began).Seconds())
		m.began = time.Time{}
	}
}

// leavesSince returns since when the add-on is seen to leave.
func (m *addonMemory) leavesSince(now time.Time) time.Time {
	if m.leavingSince.IsZero() {
		m.leavingSince = now
	}
	return m.leavingSince
}
