// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"fmt"
	"regexp"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// requirementsFile says what a chart of apiVersion v1 depends on.
const requirementsFile = "requirements.yaml"

// Names and versions of charts, as far as they may become names of directories.
var (
	chartName    = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._-]{0,251}[0-9A-Za-z])?$`)
	chartVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)
)

// requirements are the dependencies that a chart declares.
type requirements struct {
	chart    string // its name and version
	file     string // that declares them
	declared []*chart.Dependency
}

// readRequirements reads those of a chart. A chart that can't be read has none: the
// renderer says what is wrong with it.
func readRequirements(files []artifact.File) requirements {
	var metadata chart.Metadata
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return requirements{}
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	file := artifact.ChartFile
	if decode(artifact.Find(files, requirementsFile), &metadata) {
		file = requirementsFile // whatever the apiVersion, as in Helm's loader
	}
	if metadata.Validate() != nil {
		return requirements{}
	}
	return requirements{chart: metadata.Name + " " + metadata.Version, file: file, declared: metadata.Dependencies}
}

// refused returns an error about the dependency of this index, which names it.
func (r requirements) refused(index int, err error) error {
	declared := strings.TrimSpace(r.declared[index].Name + " " + r.declared[index].Version)
	return failure.Within(fmt.Sprintf("dependencies[%d] of %s of chart %s, %s", index, r.file, failure.Quote(r.chart), failure.Quote(declared)), err)
}

// allows reports whether the dependency may be of this version, as Helm tells it.
func allows(declared *chart.Dependency, version string) bool {
	return declared.Version == "" || chartutil.IsCompatibleRange(declared.Version, version)
}

// chartOf returns the name and version that Chart.yaml says, both "" if it can't be read.
func chartOf(files []artifact.File) (name, version string) {
	var metadata struct{ Name, Version string }
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return "", ""
	}
	return metadata.Name, metadata.Version
}

// decode reads a YAML file as Helm does. It returns false if there is none, or if it can't
// be read.
func decode(file *artifact.File, into any) bool {
	return file != nil && yaml.Unmarshal(file.Data, into) == nil
}
