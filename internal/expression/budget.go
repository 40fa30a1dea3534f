// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Bounds of all expressions of one object, so that compiling them takes 0.5 s of CPU at most.
const (
	maxTogether      = 256
	maxTogetherBytes = 64 << 10
	maxTogetherParts = 4000
	maxParts         = 400 // of one expression
)

// macroParts are what a macro counts for, as it becomes about so many nodes.
const macroParts = 10

var macros = sets.New("all", "exists", "existsOne", "exists_one", "filter", "map", "optFlatMap", "optMap")

// CheckTogether returns why the expressions of one object aren't compiled, "" if they are. It parses none.
func CheckTogether(expressions []string) string {
	var bytes, parts int
	for _, text := range expressions {
		bytes += len(text)
		if bytes <= maxTogetherBytes {
			parts += partsOf(text)
		}
	}
	switch {
	case len(expressions) > maxTogether:
		return fmt.Sprintf("it has %d expressions, at most %d", len(expressions), maxTogether)
	case bytes > maxTogetherBytes:
		return fmt.Sprintf("its expressions have %d bytes together, at most %d", bytes, maxTogetherBytes)
	case parts > maxTogetherParts:
		return fmt.Sprintf("its expressions have %d words and signs together, a macro such as all() being %d, at most %d; use simpler ones",
			parts, macroParts, maxTogetherParts)
	}
	return ""
}

// partsOf counts words and signs, in literal texts as well. An expression has hardly more nodes.
func partsOf(text string) (parts int) {
	word := -1 // where one begins
	for at, r := range text + " " {
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			if word < 0 {
				word = at
				parts++
			}
			continue
		case !unicode.IsSpace(r):
			parts++
		}
		if word >= 0 && macros.Has(text[word:at]) {
			parts += macroParts
		}
		word = -1
	}
	return parts
}
