// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// FromJSON writes JSON in one line, such that YAML's parser reads the same in it. Manifests
// and Helm's records are read as YAML, which knows other escapes, and doesn't take all
// characters. A key that is there twice is refused.
func FromJSON(data []byte) (string, error) {
	if !utf8.Valid(data) {
		return "", errors.New("it isn't UTF-8")
	}
	var content any
	twice, err := kjson.UnmarshalStrict(data, &content)
	if err = errors.Join(append(twice, err)...); err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return "", err
	}
	var escaped strings.Builder
	for _, r := range strings.TrimSuffix(text.String(), "\n") {
		if r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff { // YAML takes them in escapes only
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.String(), nil
}

// Marshal writes an object as YAML 1.1, as which manifests are read.
func Marshal(object map[string]any) (string, error) {
	written, err := yamlv2.Marshal(object)
	return strings.TrimSuffix(string(written), "\n"), err
}

// ToJSON converts YAML, and refuses a key that is there twice. The strict parser takes a key for that which
// overrides one of a merge key ("<<"); so where there are merge keys, another parser looks for it.
func ToJSON(text []byte) ([]byte, error) {
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
