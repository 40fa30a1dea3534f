// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// jsonAsYAML writes JSON in one line, such that YAML's parser reads the same in it: manifests
// and Helm's records are read as YAML, which knows other escapes, and doesn't take all
// characters. Order, numbers, and keys that are there twice stay as they are.
func jsonAsYAML(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("it isn't UTF-8")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return "", err
	}
	var err error
	text := jsonScalar.ReplaceAllStringFunc(compact.String(), func(scalar string) string {
		if scalar[0] == '"' {
			return requote(scalar)
		}
		if _, invalid := strconv.ParseFloat(scalar, 64); invalid != nil { // YAML would take it for a string
			err = fmt.Errorf("number %.64s is out of range", scalar)
		}
		return scalar
	})
	return text, err
}

// jsonScalar is a string or a number in JSON that is valid.
var jsonScalar = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*`)

// requote writes one string of JSON as YAML reads it.
func requote(quoted string) string {
	if strings.Contains(quoted, `\`) {
		var text string
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		if json.Unmarshal([]byte(quoted), &text) != nil || encoder.Encode(text) != nil {
			return quoted // which can't be, of JSON that is valid
		}
		quoted = strings.TrimSuffix(plain.String(), "\n")
	}
	if strings.IndexFunc(quoted, mustEscape) < 0 {
		return quoted
	}
	var b strings.Builder
	for _, r := range quoted {
		if mustEscape(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mustEscape tells the characters that YAML takes in escapes only, or for the end of a line.
func mustEscape(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// yamlOf writes an object as YAML.
func yamlOf(object map[string]any) (string, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	text, err := jsonAsYAML(data)
	if err != nil {
		return "", err
	}
	written, err := yaml.JSONToYAML([]byte(text))
	return strings.TrimSuffix(string(written), "\n"), err
}
