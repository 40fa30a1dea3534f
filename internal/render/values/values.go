// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// Limits of values: above what people write (Cilium's values.yaml has 0.15 MiB and 3000
// values), and few enough for the manager, which holds them.
const (
	maxValuesJSON  = 4 << 20 // bytes, with all aliases written out
	maxValuesCount = 150_000
	maxValuesDepth = 200
)

// Read reads values, within a worker.
func Read(req *job.Values) (map[string]any, error) {
	convert := strictyaml.ToJSON
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
		merged = Merge(merged, layer)
	}
	return merged, checkSize(merged, size)
}

// checkSize refuses values that have too many bytes as JSON, or parts.
func checkSize(values map[string]any, inJSON int) error {
	switch count, depth := strictyaml.Measure(values); {
	case inJSON > maxValuesJSON:
		return fmt.Errorf("larger than %d bytes with all aliases written out", maxValuesJSON)
	case count > maxValuesCount:
		return fmt.Errorf("more than %d values", maxValuesCount)
	case depth > maxValuesDepth:
		return fmt.Errorf("nested deeper than %d", maxValuesDepth)
	}
	return nil
}

// quoting are the parts of a YAML parser's messages that quote the input: a password
// that begins with an asterisk is an alias, one after an exclamation mark a tag.
var quoting = regexp.MustCompile("'[^']*'|`[^`]*`")

// expected are the characters that a YAML parser misses, which it puts in quotes, too.
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
