// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// kustomized returns the objects of a kustomization.
func kustomized(req *job.Files, reader *manifest.Reader, enter func(job.Stage)) ([]manifest.Document, error) {
	enter(job.StageKustomization)
	file, err := kustomizationIn(path.Clean(req.Directory), req.Files)
	if err != nil {
		return nil, err
	}
	resources, err := build(file, req.Files, reader.Limits.MaxObjects)
	if err != nil {
		return nil, err
	}
	enter(job.StageManifests)
	return readResources(reader, file, resources)
}

// kustomizationIn is the file of the kustomization in a directory of the artifact.
func kustomizationIn(directory string, files []artifact.File) (string, error) {
	for _, file := range files {
		if isKustomization(file.Name) && path.Dir(file.Name) == directory {
			return file.Name, nil
		}
	}
	return "", failure.New(job.ReasonKustomizationInvalid, "%s has no kustomization.yaml%s", place(directory),
		elsewhere(files, "kustomization.directory", isKustomization))
}

// build runs kustomize on the files, without plugins, functions and Helm. If it asks for anything else
// all the same, the sandbox refuses it.
func build(file string, all []artifact.File, maxObjects int) (resmap.ResMap, error) {
	files := newKustomizeFiles(all, maxObjects)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path.Join(artifactRoot, path.Dir(file)))
	if files.schema { // it is kept in a variable of the process, and this worker continues with other requests
		openapi.ResetOpenAPI()
	}
	var asked *url.Error
	switch {
	case files.refused != nil:
		return nil, files.refused
	case errors.As(err, &asked): // with the whole address, which may have secrets
		return nil, failure.New(job.ReasonKustomizationInvalid, "%s: a file that it names has an address, and nothing is read from outside of the artifact; put it into the artifact", file)
	case err != nil && strings.Contains(err.Error(), "--enable-helm"): // which nobody can
		return nil, failure.New(job.ReasonKustomizationInvalid, "%s: charts inside of kustomizations aren't rendered; make the chart an add-on of its own, with patches if it needs them", file)
	case err != nil:
		return nil, failure.New(job.ReasonKustomizationInvalid, "%s: %s", file, message.Redact(strings.TrimSpace(err.Error()), slices.Collect(maps.Keys(files.secrets))))
	}
	return resources, nil
}

// readResources decodes the resources that kustomize made.
func readResources(reader *manifest.Reader, file string, resources resmap.ResMap) ([]manifest.Document, error) {
	if n := resources.Size(); n > reader.Limits.MaxObjects {
		return nil, failure.New(job.ReasonOutputTooLarge, "the kustomization has %d objects, at most %d; split it", n, reader.Limits.MaxObjects)
	}
	documents := make([]manifest.Document, 0, resources.Size())
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, failure.New(job.ReasonManifestInvalid, "%s: %s %s: %w", file, resource.GetKind(), resource.GetName(), err)
		}
		doc, err := reader.Decode(file, string(text))
		if err != nil {
			return nil, err
		}
		documents = append(documents, doc)
	}
	if len(documents) == 0 {
		return nil, failure.New(job.ReasonKustomizationInvalid, "%s makes no objects; add resources, or correct kustomization.directory", file)
	}
	return documents, nil
}
