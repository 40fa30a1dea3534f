// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
)

// ChartOf is the name and the version that Chart.yaml says, "" if it says none.
func ChartOf(files []artifact.File) (name, version string) {
	var metadata struct{ Name, Version string }
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return "", ""
	}
	return metadata.Name, metadata.Version
}

// MaxChartFile is more than any Chart.yaml has; what is larger isn't looked into.
const MaxChartFile = 64 << 10 // bytes
