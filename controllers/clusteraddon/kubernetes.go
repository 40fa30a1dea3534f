// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"encoding/json"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// fit chooses the chart's version by the version of Kubernetes that the cluster runs. If the add-on
// goes before the control plane in an upgrade, the next version counts as well. If there is none,
// a.incompatible says why, and nothing of the add-on is changed.
func (a *addon) fit(running string, u *upgrade.Upgrade) {
	a.ranges = compatibility.Ranges(a.stack, &a.Addon)
	if by := compatibility.Excluding(a.ranges, running); by != nil {
		a.incompatible = fmt.Sprintf("addons[%s].%s: %s doesn't allow Kubernetes %s, which the cluster runs; "+
			"it is neither installed nor changed. Correct the range, or upgrade the cluster", a.Name, by.Field, by.Versions, running)
		return
	}
	row, found := compatibility.Pick(a.Chart.Versions, running)
	if found && u.AtControlPlane() && a.point() == addonsv1.UpgradeBeforeControlPlane {
		bridge, from, to := compatibility.Bridge(a.Chart.Versions, append([]string{running}, u.Steps...))
		if to != "" {
			a.unfit = fmt.Sprintf("No row of addons[%s].chart.versions of AddonStack %s is for both Kubernetes %s and %s. The add-on is to run with both: add a row",
				a.Name, a.stack, from, to)
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

// kubernetesVersions returns for which versions of Kubernetes the specs and installed charts are.
func (q upgradeGate) kubernetesVersions() *addonsv1.KubernetesVersions {
	var ranges []addonsv1.KubernetesRange
	for i := range q.wanted {
		ranges = slices.Concat(ranges, q.wanted[i].ranges, q.installedRanges(&q.wanted[i]))
	}
	if len(ranges) == 0 {
		return nil
	}
	return &addonsv1.KubernetesVersions{Ranges: ranges}
}

// installedRanges returns the range of the chart that is installed, none if it has none.
func (q upgradeGate) installedRanges(a *addon) []addonsv1.KubernetesRange {
	var asked job.FactsUsed
	if record := q.installed[a.release()]; record.FactsUsed == "" || json.Unmarshal([]byte(record.FactsUsed), &asked) != nil {
		return nil
	}
	return compatibility.Installed(a.stack, &a.Addon, asked.KubeRange)
}
