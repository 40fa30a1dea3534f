// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// ParseManifest returns the objects of a manifest of YAML documents, in their
// order. Lists are taken apart; documents without content are left out. The manifest
// may be anybody's: what would take much memory is refused.
func ParseManifest(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var values, written int
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting document %d: %w", n, err)
		}
		if err := yamllimit.Manifest.Check(document); err != nil {
			return nil, fmt.Errorf("parsing document %d: %w", n, err)
		}
		converted, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("parsing document %d: %w", n, err)
		}
		values += jsonsize.Values(converted)
		written += len(converted)
		if values > maxValues || written > maxInflated {
			return nil, fmt.Errorf("parsing document %d: up to here there are %d values in %d bytes, at most %d in %d", n, values, written, maxValues, maxInflated)
		}
		if bytes.Equal(bytes.TrimSpace(converted), []byte("null")) {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(converted); err != nil {
			return nil, fmt.Errorf("parsing document %d: %w", n, err)
		}
		if !u.IsList() {
			objects = append(objects, u)
			continue
		}
		list, err := u.ToList()
		if err != nil {
			return nil, fmt.Errorf("taking the list of document %d apart: %w", n, err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
}

// ParsingCost estimates how many bytes of memory it takes to parse the manifest and the hooks, beside the objects that come of it.
// Documents are parsed one after the other. There are as many values as lines, list items, commas and brackets, or a few times as many.
func (r *Record) ParsingCost() (bytes int64) {
	const ofPart = 512
	for _, manifest := range r.manifests() {
		for document := range strings.SplitSeq(manifest, "\n---") {
			parts := 1
			for _, separator := range []string{"\n", "- ", ",", "[", "{"} {
				parts += strings.Count(document, separator)
			}
			bytes = max(bytes, int64(4*len(document)+ofPart*parts))
		}
	}
	return bytes
}

// FormatManifest is the opposite of ParseManifest.
func FormatManifest(objects []*unstructured.Unstructured) (string, error) {
	var b strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return "", fmt.Errorf("writing %s: %w", KeyOf(o), err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String(), nil
}
