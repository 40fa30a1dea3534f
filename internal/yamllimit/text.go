// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"bytes"
	"strings"
)

// counts are what YAML can't do without when it has many values or levels.
type counts struct {
	entries int // breaks of lines, and commas
	opened  int // brackets
	markers int // of lists and of keys, at the beginnings of lines
	indent  int // longest beginning of a line, markers included
	escapes int // bytes that JSON takes more for what it escapes
}

// atMost is an upper bound of what a text without aliases comes to, from a look at its characters
// alone: no parser runs. It may be far off where brackets are in strings.
func atMost(text []byte) (size Size, entries int) {
	if isUTF16(text) {
		entries = len(text) / 4 // a value and a comma take two bytes each
		return Size{Values: 3 * (len(text) + 1), Written: 8 * (len(text) + 1), Depth: len(text)}, entries
	}
	c := count(text)
	// A segment between two of these holds a key and a value at most, and a map that it implies,
	// as in [a: 1, b: 2].
	values := 3*(c.entries+c.opened+1) + 2*c.markers + 1 // and the document
	return Size{
		Values:  values,
		Written: len(text) + c.escapes + around*values,
		Depth:   c.opened + 2*c.indent + 4,
	}, c.entries
}

func count(text []byte) counts {
	var c counts
	beginning, indent := true, 0
	for i, b := range text {
		c.escapes += escaped(b)
		switch b {
		case '\\': // "\0" becomes "\u0000"
			c.escapes += 4
		case '[', '{':
			c.opened++
		case ',':
			c.entries++
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				continue
			}
		case '-', '?', ':':
			if beginning {
				c.markers++
			}
		}
		if isBreak(text, i) {
			c.entries++
			beginning, indent = true, 0
			continue
		}
		if beginning = beginning && strings.IndexByte(" \t-?:\xEF\xBB\xBF", b) >= 0; beginning { // with the byte order mark
			indent++
			c.indent = max(c.indent, indent)
		}
	}
	return c
}

// isBreak tells whether a line ends with this byte. YAML 1.1 knows some breaks of Unicode, too.
func isBreak(text []byte, i int) bool {
	switch text[i] {
	case '\n', '\r':
		return true
	case 0x85:
		return i > 0 && text[i-1] == 0xC2
	case 0xA8, 0xA9:
		return i > 1 && text[i-1] == 0x80 && text[i-2] == 0xE2
	}
	return false
}

func isUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0xFE, 0xFF}) || bytes.HasPrefix(text, []byte{0xFF, 0xFE})
}

// mayHaveAliases is false only if there are none: an alias takes an anchor.
func mayHaveAliases(text []byte) bool {
	return bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0
}
