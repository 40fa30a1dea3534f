// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/cluster-chandler/chandler/internal/message"
)

const (
	// MaxNote leaves room in an event's note, which has up to 1024 bytes.
	MaxNote = 1000
	// MaxProblem leaves room for what a message says beside what is wrong.
	MaxProblem = 900
)

// FirstOf joins the first few of many texts, in about MaxProblem bytes.
func FirstOf(texts []string) string {
	shown := slices.Clone(texts)
	few := min(len(shown), message.Few)
	for i := range few {
		shown[i] = message.Shorten(shown[i], MaxProblem/few)
	}
	return message.FirstFew(shown)
}
