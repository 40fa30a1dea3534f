// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
)

// newResult returns a result without objects, with the metadata that Helm shows of a release's chart.
func newResult(req *job.Files) (*job.Result, error) {
	result := &job.Result{Name: req.Release.Name, Version: req.Version}
	var err error
	result.Metadata, err = json.Marshal(&chart.Metadata{APIVersion: chart.APIVersionV2, Name: result.Name, Version: result.Version})
	return result, err
}

// place names a directory of the artifact in a message.
func place(directory string) string {
	if directory == "" || directory == "." {
		return "the artifact's root"
	}
	return "directory " + directory + " of the artifact"
}

// finish makes the result of documents that have no hooks.
func finish(reader *manifest.Reader, result *job.Result, documents []manifest.Document, patches []addonsv1.Patch, enter func(job.Stage)) (*job.Result, error) {
	var err error
	if len(patches) > 0 {
		enter(job.StagePatches)
		if documents, _, err = patch.Apply(reader, patches, documents, nil); err != nil {
			return nil, err
		}
	}
	if err := reader.CollectInto(result, documents); err != nil {
		return nil, err
	}
	return result, nil
}
