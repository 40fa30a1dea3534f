// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// SecretsIn are the values in an object or a list, if it is of Secrets.
func SecretsIn(object map[string]any) []string {
	var all []string
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			if item, ok := item.(map[string]any); ok {
				all = append(all, SecretsIn(item)...)
			}
		}
	}
	if object["kind"] != "Secret" {
		return all
	}
	data, _ := object["data"].(map[string]any)
	for _, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
		all = append(all, text)
	}
	data, _ = object["stringData"].(map[string]any) // of one that was rendered
	for _, value := range data {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// Secrets returns the values as templates have them: of a certificate, its parts.
func (g Generated) Secrets() []string {
	var all []string
	for key, text := range g {
		var parts map[string]string
		switch {
		case key == NowKey:
		case json.Unmarshal([]byte(text), &parts) == nil:
			all = slices.AppendSeq(all, maps.Values(parts))
		default:
			all = append(all, text)
		}
	}
	return all
}

// NowKey is the key of the time in Generated.
const NowKey = "now"

// longNumber is from where on a number may be a secret, and isn't rather a port or a count.
const longNumber = 100_000

// StringsIn appends all strings in a tree of values, and long numbers as they are written.
func StringsIn(found []string, value any) []string {
	switch value := value.(type) {
	case string:
		found = append(found, value)
	case float64:
		if value >= longNumber {
			found = append(found, strconv.FormatFloat(value, 'f', -1, 64), fmt.Sprint(value))
		}
	case map[string]any:
		for _, element := range value {
			found = StringsIn(found, element)
		}
	case []any:
		for _, element := range value {
			found = StringsIn(found, element)
		}
	}
	return found
}
