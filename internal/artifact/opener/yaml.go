// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// maxJSON bounds a document as JSON: aliases may make much of little YAML.
const maxJSON = 64 << 10 // bytes

// toJSON returns a YAML document as JSON. Of a key that is there twice it takes the last one.
func toJSON(data []byte) ([]byte, error) {
	document, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't YAML: %w", err)
	}
	if len(document) > maxJSON {
		return nil, failure.TooLarge("it, with its aliases written out,", maxJSON)
	}
	return document, nil
}
