// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// IsInstalled reports whether an add-on of the phase is installed as wanted, and was ready. Others don't wait for one
// that is Degraded since: their change may be what helps.
func IsInstalled(phase addonsv1.AddonPhase) bool {
	return phase == addonsv1.AddonReady || phase == addonsv1.AddonDegraded
}

// IsHeldBack reports whether a change waits for a point of an upgrade of Kubernetes, by its reason.
func IsHeldBack(reason string) bool {
	return reason == reasons.WaitingForControlPlane || reason == reasons.WaitingForWorkers
}
