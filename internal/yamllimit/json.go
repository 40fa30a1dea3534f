// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"encoding/json"
	"fmt"
)

// DecodeJSON decodes JSON that has at most so many values, keys included. JSON has no aliases, yet
// "{}," may stand for a struct of hundreds of bytes.
func DecodeJSON(text []byte, values int, into any) error {
	if SizeOfJSON(text).Values > values {
		return fmt.Errorf("more than %d values", values)
	}
	return json.Unmarshal(text, into)
}

// SizeOfJSON counts the values in JSON, without any memory for them. Of what is no JSON it says
// something.
func SizeOfJSON(text []byte) Size {
	size := Size{Values: 1, Written: len(text)}
	level, inString := 0, false
	var last byte // that isn't a space
	for i := 0; i < len(text); i++ {
		b := text[i]
		if inString {
			switch b {
			case '\\':
				i++
			case '"':
				inString = false
			}
			continue
		}
		switch b {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			inString = true
		case '[', '{':
			size.Values++ // what is first in it
			level++
			size.Depth = max(size.Depth, level)
		case ']', '}':
			if level--; last == '[' || last == '{' {
				size.Values-- // nothing is
			}
		case ',', ':':
			size.Values++
		}
		last = b
	}
	return size
}
