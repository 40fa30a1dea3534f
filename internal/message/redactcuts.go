// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
)

// leastLeft is how much is told from other text of a secret that was cut, in bytes of the text.
const leastLeft = 8

// hideAtCuts takes out what is left of a secret in a text that was cut: its start at the end, and about a gap both its
// start and its end.
func hideAtCuts(text, secret string) string {
	if !Hides(secret) {
		return text
	}
	pieces := strings.Split(text, gap)
	for i, piece := range pieces {
		if len(piece) < leastLeft {
			continue
		}
		start, end := secret[:min(len(secret), len(piece))], secret[max(0, len(secret)-len(piece)):]
		for _, form := range written(start, piece[len(piece)-leastLeft:]) {
			piece = piece[:len(piece)-overlap(piece, form)]
		}
		if len(piece) < len(pieces[i]) {
			piece += Redacted
		}
		if i > 0 && len(piece) >= leastLeft {
			rest := piece
			for _, form := range written(end, piece[:leastLeft]) {
				rest = rest[overlap(form, rest):]
			}
			if len(rest) < len(piece) {
				piece = Redacted + rest
			}
		}
		pieces[i] = piece
	}
	return strings.Join(pieces, gap)
}

// written returns those forms of a secret that have a part: as it is and in JSON, in hex and in base64.
func written(secret, part string) (found []string) {
	forms := []string{secret, asJSON(secret)}
	if !strings.ContainsAny(part, " \t\n.,:;'\"") {
		forms = append(append(forms, inHex(secret)...), InBase64(secret)...)
	}
	for _, form := range forms {
		if strings.Contains(form, part) {
			found = append(found, form)
		}
	}
	return found
}

// overlap returns how many bytes at the end of one text are the start of another, 0 for fewer than leastLeft. It takes time
// with the lengths alone, by the algorithm of Knuth, Morris and Pratt.
func overlap(before, after string) int {
	before = before[max(0, len(before)-len(after)):]
	// borders are how much of the start of the other text each start of it ends with.
	borders, n := make([]int, len(after)), 0
	for i := 1; i < len(after); i++ {
		n = extended(after, borders, n, after[i])
		borders[i] = n
	}
	n = 0
	for i := range len(before) {
		n = extended(after, borders, n, before[i])
	}
	if n < leastLeft {
		return 0
	}
	return n
}

// extended returns how much of the start of a text is at the end of what has one byte more, where it was n.
func extended(text string, borders []int, n int, next byte) int {
	for n > 0 && (n == len(text) || text[n] != next) {
		n = borders[n-1]
	}
	if n < len(text) && text[n] == next {
		n++
	}
	return n
}
