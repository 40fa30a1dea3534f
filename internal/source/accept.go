// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// accepts checks that content which was named by its digest is the version that
// the reference says beside it: who changes one of both, and forgets the other, is told.
func (r Reference) accepts(artifact *Artifact) error {
	digest, field := r.digestField()
	if digest == "" && r.Chart.Verify == nil || r.Chart.Version == "" || r.Kind.Verbatim() {
		return nil
	}
	if r.Chart.GitHub != nil && r.Chart.Verify == nil {
		return nil // there, version is that of the release, and whether the digest is of it was asked there
	}
	_, is := artifact.chart()
	same := strings.TrimPrefix(is, "v") == strings.TrimPrefix(r.Chart.Version, "v")
	if digest == "" && !same {
		// Who signed it signed other versions, too, and whoever may move a tag can show one of them.
		return failure.New(failure.SignatureInvalid, "what is signed is version %s of the chart, not version; publish the signed chart under its own version", failure.Quote(is))
	}
	if !same {
		return failure.New(failure.DigestMismatch, "%s is version %s of the chart, not version; correct one of both", field, failure.Quote(is))
	}
	return nil
}

// chart is the name and the version that Chart.yaml says, "" if it says none.
func (a *Artifact) chart() (name, version string) {
	var metadata struct {
		Name    string `yaml:"name"`
		Version string `yaml:"version"`
	}
	for _, file := range a.Files {
		if file.Name != artifact.ChartFile || len(file.Data) > maxChartFile {
			continue
		}
		if err := yaml.Unmarshal(file.Data, &metadata); err != nil {
			return "", ""
		}
	}
	return metadata.Name, metadata.Version
}

// maxChartFile is more than any Chart.yaml has; what is larger isn't looked into.
const maxChartFile = 64 << 10 // bytes
