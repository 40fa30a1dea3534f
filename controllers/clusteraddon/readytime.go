// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// beginnings says since when add-ons are worked on that aren't Ready, by release. Losing one measures less time.
type beginnings map[deliver.Release]time.Time

// time measures how long an add-on takes from the first reconcile that works on it to Ready.
func (b beginnings) time(release deliver.Release, phase addonsv1.AddonPhase, reconcile, now time.Time) {
	began, known := b[release]
	if !known {
		began = reconcile
	}
	if b[release] = began; phase == addonsv1.AddonReady {
		readySeconds.Observe(now.Sub(began).Seconds())
		delete(b, release)
	}
}
