// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// Merge merges layers of values as Helm does: the later wins, maps are merged deeply, lists are
// replaced. A null replaces what is below it and stays: it makes Helm drop the chart's
// default. The layers are not modified; the result may share parts with them.
func Merge(layers ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, layer := range layers {
		merged = loader.MergeMaps(merged, layer)
	}
	return merged
}

// MergeWithin merges a layer over values as [Merge] does, and refuses what is larger than [Read] would.
func MergeWithin(below, layer map[string]any) (map[string]any, error) {
	merged := Merge(below, layer)
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	return merged, checkSize(merged, len(data))
}
