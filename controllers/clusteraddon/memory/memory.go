// SPDX-License-Identifier: Apache-2.0

// Package memory keeps what this process remembers of the add-ons of a cluster from one reconcile to the next.
package memory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/flowcontrol"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Addons are what is remembered of the add-ons of one cluster.
//
// Key: the release.
// Bound: until the add-on is neither wanted nor installed.
// Lost with it: some looks and pauses more, and less time is measured.
type Addons struct {
	mu    sync.Mutex // add-ons are delivered beside each other
	known map[deliver.Release]*Addon
	// Installs are those of add-ons that had no record, by release.
	Installs *flowcontrol.Backoff
	// Repairs bounds the repairs of changes by others.
	Repairs *rate.Limiter
}

// Addon is what is remembered of one add-on.
type Addon struct {
	Checks checks.Memory
	// Agreed are optional sources of values without which somebody lets the add-on go on. Losing one asks once more.
	Agreed sets.Set[string]
	// Drift is what is known of changes by others, Health what was seen of workloads.
	Drift  upkeep.DriftMemory
	Health upkeep.HealthMemory
	// began is since when the add-on is worked on, and isn't Ready; zero if it isn't.
	began time.Time
	// leavingSince is since when the add-on waits for others that may take over its objects; zero if it isn't to leave.
	leavingSince time.Time
}

// Pauses before an add-on is installed once more whose record doesn't stay. They double, and what
// is below retry.Install is none: the watch of records may be behind.
const freeInstalls = 3

// New returns the memory of a cluster of which nothing is known.
func New() *Addons {
	return &Addons{
		known:    map[deliver.Release]*Addon{},
		Installs: flowcontrol.NewBackOff(retry.Install.First>>(freeInstalls-1), retry.Install.Longest),
		Repairs:  rate.NewLimiter(upkeep.RepairRate, upkeep.RepairBurst),
	}
}

// Of returns the memory of an add-on, an empty one at first.
func (m *Addons) Of(release deliver.Release) *Addon {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[release] == nil {
		m.known[release] = &Addon{Agreed: sets.New[string]()}
	}
	return m.known[release]
}

// Forget drops an add-on whose removal was tried.
func (m *Addons) Forget(release deliver.Release) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, release)
}

// Keep drops the add-ons that are neither wanted nor installed, and notes those that don't leave. One that has just been installed
// may not be seen yet.
func (m *Addons) Keep(o *gather.Observed, leaving []deliver.Release) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.known, func(release deliver.Release, known *Addon) bool {
		if !slices.Contains(leaving, release) {
			known.leavingSince = time.Time{}
		}
		_, isInstalled := o.Installed[release]
		return !isInstalled && !o.Wants(release)
	})
}

// InstallPause returns how long to wait before an add-on without a record is installed; 0 if it may be now.
func (m *Addons) InstallPause(release deliver.Release, now time.Time) time.Duration {
	pause := m.Installs.Get(release.String())
	if pause < retry.Install.First || !m.Installs.IsInBackOffSinceUpdate(release.String(), now) {
		return 0
	}
	return pause
}

// Took returns how long the add-on took from the first reconcile that worked on it to Ready; false unless it is Ready.
func (m *Addon) Took(phase addonsv1.AddonPhase, reconcile, now time.Time) (time.Duration, bool) {
	if m.began.IsZero() {
		m.began = reconcile
	}
	if phase != addonsv1.AddonReady {
		return 0, false
	}
	took := now.Sub(m.began)
	m.began = time.Time{}
	return took, true
}

// LeavesSince returns since when the add-on is seen to leave.
func (m *Addon) LeavesSince(now time.Time) time.Time {
	if m.leavingSince.IsZero() {
		m.leavingSince = now
	}
	return m.leavingSince
}
