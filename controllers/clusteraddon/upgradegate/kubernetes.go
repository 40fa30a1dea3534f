// SPDX-License-Identifier: Apache-2.0

package upgradegate

import (
	"encoding/json"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/compatibility"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// KubernetesVersions returns for which versions of Kubernetes the specs and installed charts are.
func KubernetesVersions(o *gather.Observed) *addonsv1.KubernetesVersions {
	var ranges []addonsv1.KubernetesRange
	for i := range o.Wanted {
		ranges = slices.Concat(ranges, o.Wanted[i].Ranges, installedRanges(o, &o.Wanted[i]))
	}
	if len(ranges) == 0 {
		return nil
	}
	return &addonsv1.KubernetesVersions{Ranges: ranges}
}

// installedRanges returns the range of the chart that is installed, none if it has none.
func installedRanges(o *gather.Observed, a *wanted.Addon) []addonsv1.KubernetesRange {
	var asked job.FactsUsed
	if record := o.Installed[a.Release()]; record.FactsUsed == "" || json.Unmarshal([]byte(record.FactsUsed), &asked) != nil {
		return nil
	}
	return compatibility.Installed(a.Stack, &a.Addon, asked.KubeRange)
}
