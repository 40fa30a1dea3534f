// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	"cmp"
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// HasSay reports whether the add-on says anything about upgrades of Kubernetes.
func (a *Addon) HasSay() bool {
	return a.Point() != addonsv1.UpgradeIndependent || a.Present() != addonsv1.PresentAlways || len(a.Chart.Versions) > 0 || a.Lifecycle != nil && a.Lifecycle.KubernetesVersions != ""
}

// Point returns the point of an upgrade at which changes of the add-on are delivered.
func (a *Addon) Point() addonsv1.UpgradePoint {
	if a.Lifecycle == nil {
		return addonsv1.UpgradeIndependent
	}
	return cmp.Or(a.Lifecycle.Upgrade, addonsv1.UpgradeIndependent)
}

// Present returns when the add-on is there.
func (a *Addon) Present() addonsv1.Present { return stack.PresentOf(&a.Addon) }

// AwaitedAt returns the point at which an upgrade waits for the add-on to be ready.
func (a *Addon) AwaitedAt() addonsv1.UpgradePoint {
	if a.Present() == addonsv1.PresentBeforeUpgrade {
		return addonsv1.UpgradeBeforeControlPlane
	}
	return a.Point()
}

// Fit chooses the chart's version by the version of Kubernetes that the cluster runs. If the add-on
// goes before the control plane in an upgrade, the next version counts as well. If there is none,
// a.incompatible says why, and nothing of the add-on is changed.
func (a *Addon) Fit(running string, u *upgrade.Upgrade) {
	a.Ranges = compatibility.Ranges(a.Stack, &a.Addon)
	if by := compatibility.Excluding(a.Ranges, running); by != nil {
		a.Incompatible = fmt.Sprintf("addons[%s].%s: %s doesn't allow Kubernetes %s, which the cluster runs; "+
			"it is neither installed nor changed. Correct the range, or upgrade the cluster", a.Name, by.Field, by.Versions, running)
		return
	}
	row, found := compatibility.Pick(a.Chart.Versions, running)
	if found && u.AtControlPlane() && a.Point() == addonsv1.UpgradeBeforeControlPlane {
		bridge, from, to := compatibility.Bridge(a.Chart.Versions, append([]string{running}, u.Steps...))
		if to != "" {
			a.Unfit = fmt.Sprintf("No row of addons[%s].chart.versions of AddonStack %s is for both Kubernetes %s and %s. The add-on is to run with both: add a row",
				a.Name, a.Stack, from, to)
		}
		if bridge != nil {
			row = *bridge
		}
	}
	if found {
		a.Chart = *a.Chart.DeepCopy() // the spec is shared
		a.Chart.Versions = nil
		stack.Pin{Version: row.Version, Digest: row.Digest}.IntoAddon(&a.Addon)
	}
}
