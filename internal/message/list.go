// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
)

// List joins texts as [strings.Join] does, but names at most so many of them, as in "a; b; and 3 more".
func List(texts []string, separator string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}

// gap stands for what was cut.
const gap = " ... "

// Shorten cuts the middle out of a text that is longer than the limit in bytes: its start
// names what is wrong, and its end the way out.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	left := (limit - len(gap)) / 2
	right := len(text) - (limit - len(gap) - left)
	return strings.ToValidUTF8(text[:left], "") + gap + strings.ToValidUTF8(text[right:], "")
}
