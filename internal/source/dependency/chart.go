// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"go.yaml.in/yaml/v3"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
)

// ChartOf is the name and the version that Chart.yaml says, "" if it says none.
func ChartOf(files []render.File) (name, version string) {
	var metadata struct {
		Name    string `yaml:"name"`
		Version string `yaml:"version"`
	}
	for _, file := range files {
		if file.Name != artifact.ChartFile || len(file.Data) > MaxChartFile {
			continue
		}
		if err := yaml.Unmarshal(file.Data, &metadata); err != nil {
			return "", ""
		}
	}
	return metadata.Name, metadata.Version
}

// MaxChartFile is more than any Chart.yaml has; what is larger isn't looked into.
const MaxChartFile = 64 << 10 // bytes
