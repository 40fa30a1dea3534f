// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"regexp"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// RequirementsFile says what a chart of apiVersion v1 depends on.
const RequirementsFile = "requirements.yaml"

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

// readRequirements reads those of a chart. What can't be read as Helm does has none: the
// renderer says what is wrong with a chart.
func readRequirements(files []artifact.File, left *effort) requirements {
	var metadata chart.Metadata
	if !left.decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return requirements{}
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	file := artifact.ChartFile
	if left.decode(artifact.Find(files, RequirementsFile), &metadata) {
		file = RequirementsFile // whatever the apiVersion, as in Helm's loader
	}
	if metadata.Validate() != nil {
		return requirements{}
	}
	return requirements{chart: metadata.Name + " " + metadata.Version, file: file, declared: metadata.Dependencies}
}

// refused returns an error about the dependency of this index, which names it.
func (r requirements) refused(index int, err *failure.Error) *failure.Error {
	declared := r.declared[index]
	refused := *err
	refused.Err = fmt.Errorf("dependencies[%d] of %s of chart %s, %s: %w", index, r.file, failure.Quote(r.chart),
		failure.Quote(strings.TrimSpace(declared.Name+" "+declared.Version)), err.Err)
	return &refused
}

// allows reports whether the dependency may be of this version, as Helm tells it.
func allows(declared *chart.Dependency, version string) bool {
	return declared.Version == "" || chartutil.IsCompatibleRange(declared.Version, version)
}

// ChartOf returns the name and version that Chart.yaml says, both "" if it can't be read.
func ChartOf(files []artifact.File) (name, version string) {
	var metadata struct{ Name, Version string }
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return "", ""
	}
	return metadata.Name, metadata.Version
}

// chartFileLimits are of Chart.yaml and requirements.yaml.
var chartFileLimits = yamllimit.Limits{Bytes: MaxChartFile, Values: MaxChartFile / 2, Depth: 200, Written: 2 * MaxChartFile}

// decode reads a small YAML file as Helm does. It returns false if there is none, or if it
// can't be read.
func decode(file *artifact.File, into any) bool {
	return file != nil && chartFileLimits.Check(file.Data) == nil && yaml.Unmarshal(file.Data, into) == nil
}
