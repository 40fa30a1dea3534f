// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// Unwrap returns the chart's values from what a values template of a release
// made. They are the YAML in its key "values", if that is a string, or else all
// of it. A template that made nothing has no values.
func Unwrap(rendered []byte) ([]byte, error) {
	if err := yamllimit.Handwritten.Check(rendered); err != nil {
		return nil, fmt.Errorf("what the values template made: %w", err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(rendered, &tree); err != nil {
		return nil, fmt.Errorf("the values template didn't make a YAML map: %w", err)
	}
	if inner, ok := tree["values"].(string); ok {
		return []byte(inner), nil
	}
	return rendered, nil
}
