// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// plain returns the objects of manifests.
func plain(req *job.Files, reader *manifest.Reader, enter func(job.Stage)) ([]manifest.Document, error) {
	enter(job.StageManifests)
	documents, err := readFiles(reader, manifestFiles(req.Files, req.Directory))
	switch {
	case err != nil || len(documents) > 0:
		return documents, err
	case req.Single != "" && req.Directory == "":
		return nil, failure.New(job.ReasonManifestInvalid, "%s has no objects; name a file with some", req.Single)
	}
	return nil, failure.New(job.ReasonManifestInvalid, "%s has no objects in files whose names end in .yaml, .yml or .json%s",
		place(req.Directory), elsewhere(req.Files, "manifests.directory", isManifest))
}

// manifestFiles are the files that hold manifests, in the order of their names.
func manifestFiles(files []artifact.File, directory string) []artifact.File {
	var found []artifact.File
	for _, file := range files {
		if isManifest(file.Name) && within(file.Name, directory) {
			found = append(found, file)
		}
	}
	artifact.SortFiles(found)
	return found
}

// isManifest reports whether a manifest may have a name. Hidden files aren't
// meant: editors, macOS and CI systems leave them behind.
func isManifest(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return false
		}
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func within(name, directory string) bool {
	return directory == "" || directory == "." || strings.HasPrefix(name, path.Clean(directory)+"/")
}

// readFiles decodes the documents of manifests.
func readFiles(reader *manifest.Reader, files []artifact.File) ([]manifest.Document, error) {
	var all []manifest.Document
	for _, file := range files {
		if isKustomization(file.Name) {
			return nil, failure.New(job.ReasonManifestInvalid, "%s is a kustomization, not a manifest; name it in kustomization, or take it out of the directory", file.Name)
		}
		texts, err := textsOf(file)
		if err != nil {
			return nil, failure.New(job.ReasonManifestInvalid, "%s: %w", reader.Called(file.Name), err)
		}
		for _, text := range texts {
			doc, err := reader.Decode(file.Name, text)
			if err != nil {
				return nil, err
			}
			if doc.Object != nil {
				all = append(all, doc)
			}
		}
	}
	return all, nil
}

// textsOf returns the documents of a manifest. JSON is read as such, whatever its name.
func textsOf(file artifact.File) ([]string, error) {
	data := artifact.TrimBOM(file.Data)
	if path.Ext(file.Name) != ".json" && !json.Valid(data) {
		return manifest.SplitManifests(string(data)), nil
	}
	text, err := strictyaml.FromJSON(data)
	return []string{text}, err
}

// elsewhere names directories with wanted files, as the way out for a directory that has none.
func elsewhere(files []artifact.File, field string, wanted func(name string) bool) string {
	const named = 5
	var directories []string
	for _, file := range files {
		if directory := path.Dir(file.Name); directory != "." && wanted(file.Name) && !slices.Contains(directories, directory) {
			directories = append(directories, directory)
		}
	}
	slices.Sort(directories)
	switch {
	case len(directories) == 0:
		return ""
	case len(directories) > named:
		return "; set " + field + ", as to " + strings.Join(directories[:named], ", ") + " ..."
	}
	return "; set " + field + " to " + strings.Join(directories, " or ")
}
