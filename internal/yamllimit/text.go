// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"bytes"
	"strings"
)

// atMost is an upper bound of what a text without aliases comes to, from a look at its characters
// alone: no parser runs. It may be far off where brackets are in strings. It also returns of how
// many parts there are most, without which there are no values.
func atMost(text []byte) (most size, parts int) {
	var (
		entries int // breaks of lines, and commas
		opened  int // brackets
		markers int // of lists and of keys, at the beginnings of lines
		longest int // beginning of a line, markers included
		escapes int // bytes that JSON takes more for what it escapes
	)
	beginning, indent := true, 0
	for i, b := range text {
		escapes += escaped(b)
		switch b {
		case '\\': // "\0" becomes "\u0000"
			escapes += 4
		case '[', '{':
			opened++
		case ',':
			entries++
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				continue
			}
		case '-', '?', ':':
			if beginning {
				markers++
			}
		}
		if isBreak(text, i) {
			entries++
			beginning, indent = true, 0
			continue
		}
		if beginning = beginning && strings.IndexByte(" \t-?:\xEF\xBB\xBF", b) >= 0; beginning { // with the byte order mark
			indent++
			longest = max(longest, indent)
		}
	}
	// A segment between two of these holds a key and a value at most, and a map that it implies,
	// as in [a: 1, b: 2].
	values := 3*(entries+opened+1) + 2*markers + 1 // and the document
	most = size{Values: values, Written: len(text) + escapes + around*values, Depth: opened + 2*longest + 4}
	return most, max(entries, opened+markers)
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

// mayHaveAliases is false only if there are none: an alias takes an anchor.
func mayHaveAliases(text []byte) bool {
	return bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0
}
