// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"

	"github.com/cluster-chandler/chandler/internal/message"
)

const (
	// maxNote leaves room in an event's note, which has up to 1024 bytes.
	maxNote = 1000
	// maxProblem leaves room for what a message says beside what is wrong.
	maxProblem = 900
)

// firstOf joins the first few of many texts, in about maxProblem bytes.
func firstOf(texts []string) string {
	shown := slices.Clone(texts)
	few := min(len(shown), message.Few)
	for i := range few {
		shown[i] = message.Shorten(shown[i], maxProblem/few)
	}
	return message.FirstFew(shown)
}

// first returns the first element for which a function returns true, nil if there is none.
func first[T any](list []T, matches func(*T) bool) *T {
	for i := range list {
		if matches(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
