// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// maxValues bounds the values (scalars, lists and maps) in all objects of one chart. The largest
// known charts have about 200,000. A release record is read within the same bound (package record).
const maxValues = 500_000

// maxDepth bounds the nesting of one object; custom resource definitions reach about 40.
const maxDepth = 500

// Reader decodes documents, and counts them against the limits.
type Reader struct {
	Limits    job.Limits
	Namespace string // of objects that name none
	Artifact  string // names it if it is one file
	Lenient   bool   // takes the last of the values of a key that appears twice, as Helm does

	bytes   int64
	values  int
	objects int
}

// Called returns the name of a file in messages.
func (m *Reader) Called(file string) string { return cmp.Or(m.Artifact, file) }

// Decode reads one document. More than one document is an error, and so is a key that appears twice, but in a chart.
func (m *Reader) Decode(file, text string) (Document, error) {
	doc, name := Document{Path: file, text: text}, m.Called(file)
	if m.bytes += int64(len(text)); m.bytes > m.Limits.OutputBytes {
		return doc, failure.New(job.ReasonOutputTooLarge, "the objects take more than %d bytes; split the add-on", m.Limits.OutputBytes)
	}
	content, err := m.parse(text)
	if err != nil {
		return doc, failure.New(job.ReasonManifestInvalid, "%s: %w", name, err)
	}
	values, depth := strictyaml.Measure(content)
	if m.values += values; m.values > maxValues {
		return doc, failure.New(job.ReasonOutputTooLarge, "the objects have more than %d values; split the add-on", maxValues)
	}
	if depth > maxDepth {
		return doc, failure.New(job.ReasonManifestInvalid, "%s: nested deeper than %d", name, maxDepth)
	}
	switch content := content.(type) {
	case nil:
	case map[string]any:
		if isEmptyList(content) { // which whoever reads the manifest would take for an object
			doc.text = "# a list without items"
		} else if len(content) > 0 {
			doc.Object = &unstructured.Unstructured{Object: content}
		}
	default:
		return doc, failure.New(job.ReasonManifestInvalid, "%s: is no Kubernetes object", name)
	}
	return doc, nil
}

// parse returns the content of one document.
func (m *Reader) parse(text string) (content any, err error) {
	if err := yamllimit.Manifest.Check([]byte(text)); err != nil {
		return nil, err
	}
	if err := strictyaml.CheckSingle([]byte(text)); err != nil {
		return nil, err
	}
	convert := strictyaml.ToJSON
	if m.Lenient {
		convert = yaml.YAMLToJSON
	}
	data, err := convert([]byte(text + "\n")) // as it is recorded, and as Helm applies it
	if err != nil {
		return nil, err
	}
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// Replace reads a document again that has another text now.
func (m *Reader) Replace(doc Document, text string) (Document, error) {
	m.bytes -= int64(len(doc.text))
	return m.Decode(doc.Path, text)
}

// isEmptyList tells a list whose items are null, as a template writes it that has none.
func isEmptyList(content map[string]any) bool {
	object := unstructured.Unstructured{Object: content}
	items, has := content["items"]
	return has && items == nil && strings.HasSuffix(object.GetKind(), "List") && object.GetName() == ""
}
