// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/message"
)

const (
	// maxNote leaves room in an event's note, which has up to 1024 bytes.
	maxNote = 1000
	// maxProblem leaves room for what a message says beside what is wrong.
	maxProblem = 900
	// shownProblems of many are in a message.
	shownProblems = 3
)

// shorten cuts the middle out of a text that is longer than the limit in bytes: its start
// names what is wrong, and its end the way out.
func shorten(text string, limit int) string {
	const gap = " ... "
	if len(text) <= limit {
		return text
	}
	left := (limit - len(gap)) / 2
	right := len(text) - (limit - len(gap) - left)
	return strings.ToValidUTF8(text[:left], "") + gap + strings.ToValidUTF8(text[right:], "")
}

// firstOf joins the first few of many texts, in about maxProblem bytes: what the short ones
// don't need is the long ones'.
func firstOf(texts []string) string {
	shown := texts[:min(len(texts), shownProblems)]
	most := evenly(shown, maxProblem)
	all := slices.Clone(texts)
	for i := range shown {
		all[i] = shorten(shown[i], most)
	}
	return message.List(all, "; ", shownProblems)
}

// evenly returns how many bytes each of the texts may have, so that all have that many.
func evenly(texts []string, all int) int {
	lengths := make([]int, 0, len(texts))
	for _, text := range texts {
		lengths = append(lengths, len(text))
	}
	slices.Sort(lengths)
	for i, length := range lengths {
		each := all / (len(lengths) - i)
		if length > each {
			return each
		}
		all -= length
	}
	return max(all, maxProblem)
}
