// SPDX-License-Identifier: Apache-2.0

package message

import (
	"maps"
	"slices"
	"strings"
)

// end is between strings that are looked through together.
const end = "\x00"

// RedactIn returns values, as they are read from JSON, without the secrets in their strings and keys. Each secret is whole
// there: YAML folds long strings, and indents those of several lines. If one has a zero byte, nothing of the values is left.
func RedactIn(values map[string]any, secrets []string) map[string]any {
	all := []string{""}
	each(values, func(text string) string {
		all = append(all, text)
		return text
	})
	hidden := strings.Split(Redact(strings.Join(all, end), secrets), end)
	if len(hidden) != len(all) {
		return map[string]any{Redacted: Redacted}
	}
	is, _ := each(values, func(string) string {
		hidden = hidden[1:]
		return hidden[0]
	}).(map[string]any)
	return is
}

// each returns a value with what a function makes of each string and key in it, in an order that is always the same.
func each(value any, of func(string) string) any {
	switch is := value.(type) {
	case string:
		return of(is)
	case []any:
		all := make([]any, len(is))
		for i := range is {
			all[i] = each(is[i], of)
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(is)) {
			all[of(key)] = each(is[key], of)
		}
		return all
	}
	return value
}
