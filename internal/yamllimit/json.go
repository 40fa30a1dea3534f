// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"encoding/json"
	"fmt"
)

// DecodeJSON decodes JSON that has at most so many values, keys included. JSON has no aliases, yet
// "{}," may stand for a struct of hundreds of bytes.
func DecodeJSON(text []byte, values int, into any) error {
	if CountJSON(text) > values {
		return fmt.Errorf("more than %d values", values)
	}
	return json.Unmarshal(text, into)
}

// CountJSON counts the values in JSON, keys included, without any memory for them. For a text that
// is no JSON, it returns some number.
func CountJSON(text []byte) int {
	values, inString := 1, false
	var last byte // that isn't a space
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case inString && b == '\\':
			i++
		case inString:
			inString = b != '"'
		case b == '"':
			inString = true
		case b == ' ', b == '\t', b == '\n', b == '\r':
			continue
		case b == '[', b == '{', b == ',', b == ':':
			values++ // what is first in it, or follows
		case (b == ']' || b == '}') && (last == '[' || last == '{'):
			values-- // nothing is
		}
		last = b
	}
	return values
}
