// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"context"
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

// ValuesRequest asks for values to be read.
type ValuesRequest struct {
	Text []byte
	// Lenient takes the last of the values of a key that appears twice, as Helm does: published
	// releases, and templates for the Helm add-on provider, may count on it.
	Lenient bool
}

// maxValuesText bounds the text of values, in bytes: as much as a Secret or a ConfigMap holds.
const maxValuesText = 1 << 20

// Limits of values: above what people write (Cilium's values.yaml has 0.15 MiB and 3000
// values), below what hurts the manager, which holds them.
const (
	maxValuesJSON  = 4 << 20 // bytes, with all aliases written out
	maxValuesCount = 150_000
	maxValuesDepth = 200
)

// Values reads values as Helm does: YAML 1.1 by way of JSON, so that all numbers are
// float64; several documents are merged. Unlike Helm, it refuses a key that appears twice,
// and input that is large, deep, or grows large by its aliases. A worker reads them: with
// aliases, a few KiB become GiB. Errors are as those of [Renderer.Chart].
func (r *Renderer) Values(ctx context.Context, req ValuesRequest) (map[string]any, error) {
	if len(req.Text) > maxValuesText {
		return nil, failf(ReasonValuesInvalid, "values: %d bytes, at most %d", len(req.Text), maxValuesText)
	}
	resp, err := r.do(ctx, &request{Values: &req})
	switch {
	case err != nil:
		return nil, err
	case resp.Values == nil:
		return nil, errProtocol
	}
	return resp.Values, nil
}

// readValues reads values, within a worker.
func readValues(req *ValuesRequest) (map[string]any, error) {
	convert := toJSON
	if req.Lenient {
		convert = yaml.YAMLToJSON
	}
	merged, size := map[string]any{}, 0
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(req.Text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		layer := map[string]any{}
		converted, err := convert(doc)
		if err == nil {
			err = json.Unmarshal(converted, &layer)
		}
		if err != nil {
			return nil, withoutContent(err)
		}
		if size += len(converted); size > maxValuesJSON {
			return nil, fmt.Errorf("larger than %d bytes with all aliases written out", maxValuesJSON)
		}
		merged = MergeValues(merged, layer)
	}
	switch count, depth := measureValue(merged); {
	case count > maxValuesCount:
		return nil, fmt.Errorf("more than %d values", maxValuesCount)
	case depth > maxValuesDepth:
		return nil, fmt.Errorf("nested deeper than %d", maxValuesDepth)
	}
	return merged, nil
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
