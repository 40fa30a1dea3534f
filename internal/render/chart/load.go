// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"slices"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// apiVersionV3 is that of charts which have the structure of v2, as Helm's own loader has it for them
// (helm.sh/helm/v4/internal/chart/v3). Nobody else can import that.
const apiVersionV3 = "v3"

// load reads a chart of apiVersion v1, v2 or v3 with Helm's loader.
func load(files []artifact.File) (*chart.Chart, error) {
	buffered := make([]*archive.BufferedFile, 0, len(files))
	for _, f := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: f.Name, Data: artifact.TrimBOM(f.Data)})
	}
	ch, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, err
	}
	if v := ch.Metadata.APIVersion; v != chart.APIVersionV1 && v != chart.APIVersionV2 && v != apiVersionV3 {
		return nil, failure.New(job.ReasonChartInvalid, "Chart.yaml: apiVersion %q is not supported, only v1, v2 and v3; take another version of the chart", v)
	}
	sortDependencies(ch)
	return ch, nil
}

// sortDependencies undoes the random order in which Helm's loader walks the charts/ folder.
func sortDependencies(ch *chart.Chart) {
	dependencies := slices.Clone(ch.Dependencies())
	slices.SortStableFunc(dependencies, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	ch.SetDependencies(dependencies...)
	for _, d := range dependencies {
		sortDependencies(d)
	}
}

// maxMissing dependencies are named in one message.
const maxMissing = 10

// checkInstallable refuses library charts and charts whose dependencies are not in them.
func checkInstallable(ch *chart.Chart) error {
	if ch.Metadata.Type == "library" {
		return failure.New(job.ReasonChartInvalid, "a library chart cannot be installed")
	}
	packed := map[string]bool{}
	for _, d := range ch.Dependencies() {
		packed[d.Name()] = true
	}
	var missing []string
	for _, d := range ch.Metadata.Dependencies {
		if d != nil && !packed[d.Name] && !slices.Contains(missing, d.Name) {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return failure.New(job.ReasonChartInvalid, "dependencies of Chart.yaml are missing in charts/: %s; pack them with the chart, as `helm package --dependency-update` does", message.List(missing, ", ", maxMissing))
	}
	return nil
}
