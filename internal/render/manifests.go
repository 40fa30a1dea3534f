// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// notesSuffix marks the text that Helm shows to its user after an install.
const notesSuffix = "NOTES.txt"

// document is one YAML document of a template's output.
type document struct {
	path   string
	text   string
	object *unstructured.Unstructured // nil if it holds nothing but comments
}

func (d document) kind() string {
	if d.object == nil {
		return ""
	}
	return d.object.GetKind()
}

// manifestReader reads what the templates wrote, and keeps count.
type manifestReader struct {
	limits    limits
	namespace string // of objects that name none
	artifact  string // names it if it is one file
	lenient   bool   // takes the last of the values of a key that appears twice, as Helm does

	bytes   int64
	values  int
	objects int
}

// called is what messages call a file.
func (m *manifestReader) called(file string) string { return cmp.Or(m.artifact, file) }

// readTemplates decodes what the templates wrote.
func readTemplates(reader *manifestReader, files map[string]string) ([]document, error) {
	var all []document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, notesSuffix) || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		for _, text := range splitManifests(files[name]) {
			doc, err := reader.decode(name, text)
			if err != nil {
				return nil, err
			}
			all = append(all, doc)
		}
	}
	return all, nil
}

// collectInto fills in the Manifest and Objects of a result.
func (m *manifestReader) collectInto(result *Result, documents []document) error {
	slices.SortStableFunc(documents, func(a, b document) int { return compareKinds(a.kind(), b.kind()) })
	result.Manifest = manifestText(documents)
	var err error
	result.Objects, err = m.collect(documents)
	return err
}

// readCRDs reads the files of the crds/ folders. A definition that several subcharts bring is
// taken from the first, as Helm does.
func readCRDs(reader *manifestReader, files []chart.CRD) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, file := range files {
		for _, text := range splitManifests(string(file.File.Data)) {
			doc, err := reader.decode(file.Filename, text)
			if err != nil {
				return nil, err
			}
			objects, err := reader.flatten(doc)
			if err != nil {
				return nil, err
			}
			for _, object := range objects {
				if id := identity(object, reader.namespace); !seen[id] {
					seen[id] = true
					all = append(all, object)
				}
			}
		}
	}
	return all, nil
}

// splitManifests splits a template's output into its documents, without the empty ones.
func splitManifests(content string) []string {
	split := releaseutil.SplitManifests(content)
	docs := make([]string, 0, len(split))
	for i := range len(split) {
		docs = append(docs, split[fmt.Sprintf("manifest-%d", i)])
	}
	return docs
}

// manifestText is the manifest as Helm records it.
func manifestText(docs []document) string {
	var b strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", d.path, d.text)
	}
	return b.String()
}

// decode reads one document. More than one document is an error, and so is a key that appears twice, but in a chart.
func (m *manifestReader) decode(file, text string) (document, error) {
	doc, name := document{path: file, text: text}, m.called(file)
	if m.bytes += int64(len(text)); m.bytes > m.limits.OutputBytes {
		return doc, failf(ReasonOutputTooLarge, "the objects take more than %d bytes; split the add-on", m.limits.OutputBytes)
	}
	if err := yamllimit.Manifest.Check([]byte(text)); err != nil {
		return doc, failf(ReasonManifestInvalid, "%s: %w", name, err)
	}
	if err := checkSingle([]byte(text)); err != nil {
		return doc, failf(ReasonManifestInvalid, "%s: %w", name, err)
	}
	convert := toJSON
	if m.lenient {
		convert = yaml.YAMLToJSON
	}
	data, err := convert([]byte(text + "\n")) // as it is recorded, and as Helm applies it
	if err != nil {
		return doc, failf(ReasonManifestInvalid, "%s: %w", name, err)
	}
	var content any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return doc, failf(ReasonManifestInvalid, "%s: %w", name, err)
	}
	values, depth := measureValue(content)
	if m.values += values; m.values > maxValues {
		return doc, failf(ReasonOutputTooLarge, "the objects have more than %d values; split the add-on", maxValues)
	}
	if depth > maxDepth {
		return doc, failf(ReasonManifestInvalid, "%s: nested deeper than %d", name, maxDepth)
	}
	switch content := content.(type) {
	case nil:
	case map[string]any:
		if isEmptyList(content) { // which whoever reads the manifest would take for an object
			doc.text = "# a list without items"
		} else if len(content) > 0 {
			doc.object = &unstructured.Unstructured{Object: content}
		}
	default:
		return doc, failf(ReasonManifestInvalid, "%s: is no Kubernetes object", name)
	}
	return doc, nil
}

// replace reads a document again that has another text now.
func (m *manifestReader) replace(doc document, text string) (document, error) {
	m.bytes -= int64(len(doc.text))
	return m.decode(doc.path, text)
}

// isEmptyList tells a list whose items are null, as a template writes it that has none.
func isEmptyList(content map[string]any) bool {
	object := unstructured.Unstructured{Object: content}
	items, has := content["items"]
	return has && items == nil && strings.HasSuffix(object.GetKind(), "List") && object.GetName() == ""
}

// measureValue counts scalars, lists and maps, and the levels of these.
func measureValue(value any) (count, depth int) {
	add := func(part any) {
		n, levels := measureValue(part)
		count, depth = count+n, max(depth, levels)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			add(v)
		}
	case []any:
		for _, v := range value {
			add(v)
		}
	}
	return count + 1, depth + 1
}
