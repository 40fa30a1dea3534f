// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// Limits of values: above what people write (Cilium's values.yaml has 0.15 MiB and 3000 values),
// below what hurts.
const (
	maxYAMLBytes  = 1 << 20 // as much as a Secret or a ConfigMap holds
	maxYAMLDepth  = 200
	maxYAMLValues = 150_000 // about 35 MiB while they are checked
	// maxYAMLGrowth is how large values may become when their aliases are written out, in bytes.
	maxYAMLGrowth = 4 << 20
)

// checkYAML refuses YAML that would take much memory or time to decode. It reads the nodes
// without following aliases, and calculates what they would grow to.
func checkYAML(data []byte) error {
	if len(data) > maxYAMLBytes {
		return fmt.Errorf("%d bytes, at most %d", len(data), maxYAMLBytes)
	}
	// Each value but the first takes a comma or a line, so this bounds the parser's work.
	if n := bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{'\n'}); n > maxYAMLValues {
		return fmt.Errorf("more than %d lines and list items", maxYAMLValues)
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var total yamlSize
	for {
		var doc yamlv3.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		size, err := measure(&doc, 0, map[*yamlv3.Node]yamlSize{})
		if err != nil {
			return err
		}
		if err := total.add(size); err != nil {
			return err
		}
	}
}

// yamlSize is what a node becomes with its aliases written out.
type yamlSize struct {
	values, bytes int64
	depth         int
}

func (s *yamlSize) add(part yamlSize) error {
	s.values += part.values
	s.bytes += part.bytes
	s.depth = max(s.depth, part.depth+1)
	switch {
	case s.values > maxYAMLValues:
		return fmt.Errorf("more than %d values", maxYAMLValues)
	case s.bytes > maxYAMLGrowth:
		return fmt.Errorf("larger than %d bytes with all aliases written out", maxYAMLGrowth)
	case s.depth > maxYAMLDepth:
		return fmt.Errorf("nested deeper than %d", maxYAMLDepth)
	}
	return nil
}

func measure(node *yamlv3.Node, level int, anchors map[*yamlv3.Node]yamlSize) (yamlSize, error) {
	if level > maxYAMLDepth {
		return yamlSize{}, fmt.Errorf("nested deeper than %d", maxYAMLDepth)
	}
	if node.Kind == yamlv3.AliasNode {
		size, known := anchors[node.Alias]
		if !known {
			return size, fmt.Errorf("line %d: anchor %q contains itself", node.Line, node.Value)
		}
		return size, nil
	}
	size := yamlSize{values: 1, bytes: int64(len(node.Value)) + 1}
	for _, child := range node.Content {
		part, err := measure(child, level+1, anchors)
		if err != nil {
			return size, err
		}
		if err := size.add(part); err != nil {
			return size, err
		}
	}
	if node.Anchor != "" {
		anchors[node] = size
	}
	return size, nil
}
