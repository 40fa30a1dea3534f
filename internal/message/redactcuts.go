// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
)

// hideAtCuts takes out what is left of a secret in a text that was cut: its start at the end, and about a gap both its
// start and its end.
func (h *hiding) hideAtCuts(secret string) {
	if !Hides(secret) {
		return
	}
	pieces := strings.Split(h.text, gap)
	for i, piece := range pieces {
		if len(piece) < leastLeft {
			continue
		}
		start, end := secret[:min(len(secret), len(piece))], secret[max(0, len(secret)-len(piece)):]
		for _, form := range h.written(start, piece[len(piece)-leastLeft:]) {
			piece = piece[:len(piece)-h.startAtEnd(piece, form)]
		}
		if len(piece) < len(pieces[i]) {
			piece += Redacted
		}
		if i > 0 && len(piece) >= leastLeft {
			rest := piece
			for _, form := range h.written(end, piece[:leastLeft]) {
				rest = rest[h.endAtStart(rest, form):]
			}
			if len(rest) < len(piece) {
				piece = Redacted + rest
			}
		}
		pieces[i] = piece
	}
	h.text = strings.Join(pieces, gap)
}

// startAtEnd returns how much of the start of a form of a secret a text ends with, in bytes.
func (h *hiding) startAtEnd(text, form string) int {
	n := min(len(form), len(text))
	for n >= leastLeft && h.left.Add(-int64(n)) >= 0 && !strings.HasSuffix(text, form[:n]) {
		n = strings.LastIndex(form[:n-1], text[len(text)-leastLeft:]) + leastLeft
	}
	if n < leastLeft {
		return 0
	}
	return n
}

// endAtStart returns how much of the end of a form of a secret a text begins with, in bytes.
func (h *hiding) endAtStart(text, form string) int {
	form = form[max(0, len(form)-len(text)):]
	for len(form) >= leastLeft && h.left.Add(-int64(len(form))) >= 0 && !strings.HasPrefix(text, form) {
		at := strings.Index(form[1:], text[:leastLeft])
		if at < 0 {
			return 0
		}
		form = form[1+at:]
	}
	if len(form) < leastLeft {
		return 0
	}
	return len(form)
}
