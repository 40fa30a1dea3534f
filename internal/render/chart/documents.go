// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// notesSuffix marks the text that Helm shows to its user after an install.
const notesSuffix = "NOTES.txt"

// notesOf returns the notes of the chart itself, without those of its subcharts, as Helm keeps them.
func notesOf(ch *chart.Chart, files map[string]string) string {
	notes := strings.TrimSpace(files[path.Join(ch.Name(), "templates", notesSuffix)])
	return strings.ToValidUTF8(notes[:min(len(notes), job.MaxNotes)], "")
}

// readTemplates decodes the output of the templates.
func readTemplates(reader *manifest.Reader, files map[string]string) ([]manifest.Document, error) {
	var all []manifest.Document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, notesSuffix) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		for _, text := range manifest.SplitManifests(files[name]) {
			doc, err := reader.Decode(name, text)
			if err != nil {
				return nil, err
			}
			all = append(all, doc)
		}
	}
	return all, nil
}

// readCRDs reads the files of the crds/ folders. A definition that several subcharts bring is
// taken from the first, as Helm does.
func readCRDs(reader *manifest.Reader, files []chart.CRD) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, file := range files {
		for _, text := range manifest.SplitManifests(string(file.File.Data)) {
			doc, err := reader.Decode(file.Filename, text)
			if err != nil {
				return nil, err
			}
			objects, err := reader.Flatten(doc)
			if err != nil {
				return nil, err
			}
			for _, object := range objects {
				if id := manifest.Identity(object, reader.Namespace); !seen[id] {
					seen[id] = true
					all = append(all, object)
				}
			}
		}
	}
	return all, nil
}
