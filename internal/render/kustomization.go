// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"net/url"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// renderKustomization is the whole way of a kustomization, within a worker.
func renderKustomization(req *FilesRequest, lim limits, enter func(stage)) (*Result, error) {
	enter(stageKustomization)
	result, err := req.newResult()
	if err != nil {
		return nil, err
	}
	directory := path.Clean(req.Directory)
	survey := newSurvey(req.Files, lim.MaxObjects)
	file, err := survey.of(directory)
	if err != nil {
		return nil, err
	}
	resources, err := survey.build(directory)
	if err != nil {
		return nil, err
	}
	enter(stageManifests)
	reader := &manifestReader{limits: lim, namespace: req.Release.Namespace}
	documents, err := reader.readResources(file, resources)
	if err != nil {
		return nil, err
	}
	return reader.finish(result, documents, req.Patches, enter)
}

// build runs kustomize on the files in memory. The survey has shown that it will
// ask for nothing else; if it does so all the same, the sandbox refuses it.
func (s *survey) build(directory string) (resmap.ResMap, error) {
	files := filesys.MakeFsInMemory()
	for name, data := range s.files {
		if err := files.WriteFile("/"+name, data); err != nil {
			return nil, failf(ReasonKustomizationInvalid, "%s: %w", name, err)
		}
	}
	if s.schema { // it is kept in a variable of the process, and this worker goes on with other requests
		defer openapi.ResetOpenAPI()
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path.Join("/", directory))
	if err == nil {
		return resources, nil
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		return nil, failf(ReasonKustomizationInvalid, "it reads %s, which is an address, and nothing is read from outside of the artifact; put it into the artifact", shownAddress(asked.URL))
	}
	return nil, &Error{Reason: ReasonKustomizationInvalid, Err: errors.New(s.clean(err.Error()))}
}

// readResources decodes what kustomize made.
func (m *manifestReader) readResources(file string, resources resmap.ResMap) ([]document, error) {
	if n := resources.Size(); n > m.limits.MaxObjects {
		return nil, failf(ReasonOutputTooLarge, "the kustomization has %d objects, at most %d; split it", n, m.limits.MaxObjects)
	}
	var size int64
	documents := make([]document, 0, resources.Size())
	for _, resource := range resources.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, failf(ReasonManifestInvalid, "%s: %s %s: %w", file, resource.GetKind(), resource.GetName(), err)
		}
		if size += int64(len(text)); size > m.limits.OutputBytes {
			return nil, failf(ReasonOutputTooLarge, "the kustomization makes more than %d bytes; split it", m.limits.OutputBytes)
		}
		doc, err := m.decode(file, string(text))
		if err != nil {
			return nil, err
		}
		documents = append(documents, doc)
	}
	if len(documents) == 0 {
		return nil, failf(ReasonKustomizationInvalid, "%s makes no objects; add resources, or correct kustomization.directory", file)
	}
	return documents, nil
}
