// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
)

// Objects returns the objects that files make, within a worker.
func Objects(req *job.Files, lim job.Limits, enter func(job.Stage)) (*job.Result, error) {
	read := plain
	if req.Kustomization {
		read = kustomized
	}
	reader := &manifest.Reader{Limits: lim, Namespace: req.Release.Namespace, Artifact: req.Single}
	documents, err := read(req, reader, enter)
	if err != nil {
		return nil, err
	}
	if documents, _, err = patch.Apply(reader, req.Edits, documents, nil, enter); err != nil {
		return nil, err
	}
	result := &job.Result{Name: req.Release.Name, Version: req.Version}
	// Helm shows this of a release's chart.
	result.Chart, err = json.Marshal(&chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: result.Name, Version: result.Version}})
	if err != nil {
		return nil, err
	}
	return result, reader.CollectInto(result, documents)
}

// place names a directory of the artifact in a message.
func place(directory string) string {
	if directory == "" || directory == "." {
		return "the artifact's root"
	}
	return "directory " + directory + " of the artifact"
}
