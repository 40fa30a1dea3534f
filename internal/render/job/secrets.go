// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
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
