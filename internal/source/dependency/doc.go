// SPDX-License-Identifier: Apache-2.0

// Package dependency completes a chart's directory with the charts beside it that its
// Chart.yaml names (file://), as `helm dependency build` does. What else a chart depends on
// has to be in its charts/: the renderer refuses a chart that misses some.
package dependency

const (
	// Max is how many charts may be beside one, those of its dependencies counted in.
	Max = 64
	// MaxDepth is how deep dependencies may depend on others. 1 is common.
	MaxDepth = 4
	// MaxChartFile is the size of a Chart.yaml, or the like, that is read.
	MaxChartFile = 64 << 10 // bytes
)

// fileScheme of a dependency that is beside the chart, in the same artifact.
const fileScheme = "file://"

// chartsDirectory has a chart's dependencies.
const chartsDirectory = "charts/"
