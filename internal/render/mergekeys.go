// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// toJSON converts YAML, and refuses a key that is there twice. The strict parser takes a key for that which
// overrides one of a merge key ("<<"); so where there are merge keys, the nodes are looked at instead.
func toJSON(text []byte) ([]byte, error) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err == nil || !bytes.Contains(text, []byte("<<")) {
		return data, err
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var node yamlv3.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return yaml.YAMLToJSON(text)
		} else if err != nil {
			return nil, err
		}
		if err := uniqueKeys(&node); err != nil {
			return nil, err
		}
	}
}

// uniqueKeys refuses a map whose own keys aren't.
func uniqueKeys(node *yamlv3.Node) error {
	seen := map[string]bool{}
	for i, child := range node.Content {
		if err := uniqueKeys(child); err != nil {
			return err
		}
		if node.Kind != yamlv3.MappingNode || i%2 == 1 || child.Kind != yamlv3.ScalarNode {
			continue
		}
		if seen[child.Value] {
			return fmt.Errorf("line %d: key %q already set in map", child.Line, child.Value)
		}
		seen[child.Value] = true
	}
	return nil
}
