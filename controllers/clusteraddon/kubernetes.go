// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"encoding/json"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// kubernetesVersions returns for which versions of Kubernetes the specs and installed charts are.
func (q upgradeGate) kubernetesVersions() *addonsv1.KubernetesVersions {
	var ranges []addonsv1.KubernetesRange
	for i := range q.wanted {
		ranges = slices.Concat(ranges, q.wanted[i].Ranges, q.installedRanges(&q.wanted[i]))
	}
	if len(ranges) == 0 {
		return nil
	}
	return &addonsv1.KubernetesVersions{Ranges: ranges}
}

// installedRanges returns the range of the chart that is installed, none if it has none.
func (q upgradeGate) installedRanges(a *wanted.Addon) []addonsv1.KubernetesRange {
	var asked job.FactsUsed
	if record := q.installed[a.Release()]; record.FactsUsed == "" || json.Unmarshal([]byte(record.FactsUsed), &asked) != nil {
		return nil
	}
	return compatibility.Installed(a.Stack, &a.Addon, asked.KubeRange)
}
