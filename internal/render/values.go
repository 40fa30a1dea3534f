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
	"strconv"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

var mapType = reflect.TypeFor[map[string]any]()

// MergeValues merges layers of values: the later wins, maps are merged deeply, lists are
// replaced. A null replaces what is below it and stays: it makes Helm drop the chart's
// default. The layers are not modified, and the result shares nothing with them.
func MergeValues(layers ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, layer := range layers {
		mergeInto(merged, layer)
	}
	return merged
}

func mergeInto(dst, src map[string]any) {
	for key, value := range src {
		if from, ok := value.(map[string]any); ok {
			into, ok := dst[key].(map[string]any)
			if !ok {
				into = make(map[string]any, len(from))
				dst[key] = into
			}
			mergeInto(into, from)
			continue
		}
		dst[key] = copyValue(value)
	}
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return MergeValues(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = copyValue(item)
		}
		return list
	}
	return value
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

// plainMap is a copy with only those types that templates get in Helm.
func plainMap(values map[string]any) (map[string]any, error) {
	if values == nil {
		return nil, nil
	}
	plain, err := plainValue(values)
	if err != nil {
		return nil, err
	}
	return plain.(map[string]any), nil
}

func plainValue(value any) (any, error) {
	switch value := value.(type) {
	case nil, string, bool, int, int64, float64:
		return value, nil
	case json.Number:
		if i, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return i, nil
		}
		return value.Float64()
	case map[string]any:
		plain := make(map[string]any, len(value))
		for key, item := range value {
			p, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			plain[key] = p
		}
		return plain, nil
	case []any:
		plain := make([]any, len(value))
		for i, item := range value {
			p, err := plainValue(item)
			if err != nil {
				return nil, err
			}
			plain[i] = p
		}
		return plain, nil
	}
	var plain any
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("a %T is no value: %w", value, err)
	}
	return plain, json.Unmarshal(data, &plain)
}
