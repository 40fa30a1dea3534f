// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/json"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
)

// FilesRequest asks for the objects of files that are no chart.
type FilesRequest struct {
	// Files of the artifact. Their names are relative to its root.
	Files []artifact.File `cbor:"-"`
	// Single names the artifact in messages if it is one file, whose name here nobody gave it.
	Single string
	// Directory of the kustomization, or of the manifests; empty for the root.
	Directory string
	// Release has the add-on's name and namespace.
	Release Release
	// Version is what Result.Version is to be.
	Version string
	// Patches are applied to the objects, in their order.
	Patches []addonsv1.Patch
}

// Kustomization builds a kustomization, and returns its objects. Helm's hooks among
// them are objects like all others. Errors are as those of [Renderer.Chart].
func (r *Renderer) Kustomization(ctx context.Context, req FilesRequest) (*Result, error) {
	return r.result(ctx, &request{Kustomization: &req})
}

// Manifests returns the objects in all YAML and JSON files of a directory and of
// those below it. Helm's hooks among them are objects like all others. Errors are
// as those of [Renderer.Chart].
func (r *Renderer) Manifests(ctx context.Context, req FilesRequest) (*Result, error) {
	return r.result(ctx, &request{Manifests: &req})
}

// newResult is the result of a request before anything is in it, with what Helm
// shows of a release's chart.
func newResult(req *FilesRequest) (*Result, error) {
	result := &Result{Name: req.Release.Name, Version: req.Version}
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
func finish(reader *manifestReader, result *Result, documents []document, patches []addonsv1.Patch, enter func(stage)) (*Result, error) {
	var err error
	if len(patches) > 0 {
		enter(stagePatches)
		if documents, _, err = applyPatches(reader, patches, documents, nil); err != nil {
			return nil, err
		}
	}
	if err := reader.collectInto(result, documents); err != nil {
		return nil, err
	}
	return result, nil
}
