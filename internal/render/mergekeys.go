// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"io"

	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// toJSON converts YAML, and refuses a key that is there twice. The strict parser takes a key for that which
// overrides one of a merge key ("<<"); so where there are merge keys, another parser looks for it.
func toJSON(text []byte) ([]byte, error) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err == nil || !bytes.Contains(text, []byte("<<")) {
		return data, err
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var content any // the decoder refuses a map whose own keys aren't unique
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return yaml.YAMLToJSON(text)
		} else if err != nil {
			return nil, err
		}
	}
}
