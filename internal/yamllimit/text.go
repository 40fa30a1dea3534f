// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"bytes"
	"strings"
)

// atMost returns an upper bound of what a text without aliases comes to, from counts of its signs alone: no parser runs. It
// may be far off where signs are in strings. It also returns of how many parts there are most, without which there are no
// values. YAML 1.1 knows some breaks of Unicode, too.
func atMost(text []byte) (most size, parts int) {
	entries := count(text, "\n", "\r", "\u0085", "\u2028", "\u2029", ",")
	brackets := count(text, "[", "{")
	markers := count(text, "-", "?") // of lists and of keys
	indent, longest := 0, 0          // of lines, markers of lists and of keys included
	for _, b := range text {
		if indent++; strings.IndexByte(" \t-?:", b) < 0 {
			indent = 0
		}
		longest = max(longest, indent)
	}
	// A segment between two of these holds a key and a value at most, and a map that it implies, as in [a: 1, b: 2].
	values := 3*(entries+brackets+markers) + 4
	most = size{Values: values, Written: mostWritten*len(text) + around*values, Depth: brackets + 2*longest + 4}
	return most, max(entries, brackets+markers)
}

// mostWritten is what JSON may make of a character, as of < which becomes \u003c.
const mostWritten = 6

func count(text []byte, signs ...string) (n int) {
	for _, sign := range signs {
		n += bytes.Count(text, []byte(sign))
	}
	return n
}

// mayHaveAliases is false only if there are none: an alias takes an anchor.
func mayHaveAliases(text []byte) bool {
	return bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0
}
