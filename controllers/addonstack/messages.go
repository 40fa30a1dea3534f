// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/message"
)

const (
	// maxProblem leaves room in an event's note, which has up to 1024 bytes.
	maxProblem = 900
	// shownProblems of many are in a message.
	shownProblems = 3
)

// shorten a text that is all that a message has to say.
func shorten(text string) string { return withoutMiddle(text, maxProblem) }

// firstOf joins the first few of many texts, in about as many bytes as [shorten] leaves
// to one: what the short ones don't need is the long ones'.
func firstOf(texts []string) string {
	shown := texts[:min(len(texts), shownProblems)]
	most := evenly(shown, maxProblem)
	all := slices.Clone(texts)
	for i := range shown {
		all[i] = withoutMiddle(shown[i], most)
	}
	return message.List(all, "; ", shownProblems)
}

// evenly is the most bytes that each of the texts may have, so that all have that many.
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

// withoutMiddle shortens a text whose start names what is wrong, and whose end names the
// way out.
func withoutMiddle(text string, limit int) string {
	const gap = " ... "
	if len(text) <= limit {
		return text
	}
	left := (limit - len(gap)) / 2
	right := len(text) - (limit - len(gap) - left)
	return strings.ToValidUTF8(text[:left], "") + gap + strings.ToValidUTF8(text[right:], "")
}

// shortenTo keeps the start of a text.
func shortenTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " ..."
}
