// SPDX-License-Identifier: Apache-2.0

package compatibility_test

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/compatibility"
)

// BenchmarkSummarize is what each reconcile of a ClusterAddon computes, with 20 charts.
func BenchmarkSummarize(b *testing.B) {
	var ranges []addonsv1.KubernetesRange
	for range 20 {
		ranges = append(ranges, rangeOf(compatibility.FieldKubeVersion, ">=1.21.0-0"))
	}
	for b.Loop() {
		compatibility.Summarize(ranges, "v1.36.3")
	}
}
