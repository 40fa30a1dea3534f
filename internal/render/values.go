// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

var mapType = reflect.TypeFor[map[string]any]()

// MergeValues merges layers of values as Helm does: the later wins, maps are merged deeply, lists are
// replaced. A null replaces what is below it and stays: it makes Helm drop the chart's
// default. The layers are not modified; the result may share parts with them.
func MergeValues(layers ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, layer := range layers {
		merged = loader.MergeMaps(merged, layer)
	}
	return merged
}

// ParseValues reads values as Helm does: YAML 1.1 by way of JSON, so that all numbers are
// float64; several documents are merged. Unlike Helm, it refuses a key that appears twice,
// and input that is large, deep, or grows large by its aliases.
func ParseValues(data []byte) (map[string]any, error) {
	return parseValues(data, toJSON)
}

// ParseValuesLeniently does that, and of a key that appears twice takes the last one, as Helm
// does: published releases, and templates for the Helm add-on provider, may count on it.
func ParseValuesLeniently(data []byte) (map[string]any, error) {
	return parseValues(data, yaml.YAMLToJSON)
}

func parseValues(data []byte, convert func([]byte) ([]byte, error)) (map[string]any, error) {
	if err := yamllimit.Handwritten.Check(data); err != nil {
		return nil, fmt.Errorf("values: %w", withoutContent(err))
	}
	merged := map[string]any{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return merged, nil
		}
		if err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
		layer := map[string]any{}
		converted, err := convert(doc)
		if err == nil {
			err = json.Unmarshal(converted, &layer)
		}
		if err != nil {
			return nil, fmt.Errorf("values: %w", withoutContent(err))
		}
		merged = MergeValues(merged, layer)
	}
}

// quoting are those parts of a YAML parser's messages that quote the input: a password
// that begins with an asterisk is an alias, one after an exclamation mark a tag.
var quoting = regexp.MustCompile("'[^']*'|`[^`]*`")

// expected are what a YAML parser says that it misses, in quotes, too.
var expected = regexp.MustCompile(`^'([]},:?-]|<document start>)'$`)

// withoutContent takes the input out of a message.
func withoutContent(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("of type %s, want a map", wrong.Value)
	}
	return errors.New(quoting.ReplaceAllStringFunc(err.Error(), func(quoted string) string {
		if expected.MatchString(quoted) {
			return quoted
		}
		return message.Redacted
	}))
}
