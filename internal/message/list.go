// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"regexp"
	"strings"
)

// List joins texts as [strings.Join] does, but names at most so many of them, as in "a; b; and 3 more".
func List(texts []string, separator string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}

// Few is how many things a message names: nobody reads one that names more.
const Few = 3

// FirstFew joins the first few of many texts.
func FirstFew(texts []string) string { return List(texts, "; ", Few) }

// Clusters joins the first few names of many clusters.
func Clusters(names []string) string {
	const few = 5
	return List(names, ", ", few)
}

var lineBreaks = regexp.MustCompile(`\s*[\r\n]\s*`)

// gap stands for what was cut.
const gap = " ... "

// Shorten returns a text in one line, as tables show no more of it. It cuts the middle out of one that is longer than the
// limit in bytes: its start names what is wrong, and its end the way out.
func Shorten(text string, limit int) string {
	if text = lineBreaks.ReplaceAllString(strings.TrimSpace(text), " "); len(text) <= limit {
		return text
	}
	left := (limit - len(gap)) / 2
	right := len(text) - (limit - len(gap) - left)
	return strings.ToValidUTF8(text[:left], "") + gap + strings.ToValidUTF8(text[right:], "")
}

// ShortenAll shortens each text to its limit.
func ShortenAll(limits map[*string]int) {
	for text, limit := range limits {
		*text = Shorten(*text, limit)
	}
}
