// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/test/docs"
)

var (
	codeSpan    = regexp.MustCompile("`[^`]+`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)\s]+\)`)
	sentenceEnd = regexp.MustCompile(`[.!?][*"')\]]*(\s|$)`)
	itemStart   = regexp.MustCompile(`^\s*([-*]|[0-9]+[.])\s+`)
)

// statement is a sentence, or a cell of a table, in plain text.
type statement struct {
	line int // where it begins, from 1
	text string
}

// words counts what stands between spaces.
func (s statement) words() int { return len(strings.Fields(s.text)) }

// longIn returns the sentences and cells of a text that have more words than they may.
func longIn(lines []string, sentence, cell int) []statement {
	var found []statement
	text, tables := proseOf(lines)
	for _, block := range text {
		found = append(found, longer(block.sentences(), sentence)...)
	}
	found = append(found, longer(tables, cell)...)
	slices.SortStableFunc(found, func(a, b statement) int { return a.line - b.line })
	return found
}

func longer(statements []statement, words int) []statement {
	return slices.DeleteFunc(statements, func(s statement) bool { return s.words() <= words })
}

// proseOf returns the paragraphs and list items of a text in Markdown, and the cells of its tables. It
// leaves out code and headings.
func proseOf(lines []string) (blocks, tables []statement) {
	var block []string
	var inCode bool
	end := func(line int) {
		if len(block) > 0 {
			blocks = append(blocks, statement{line - len(block), plain(strings.Join(block, "\n"))})
		}
		block = nil
	}
	for i, line := range lines {
		number := i + 1
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		isRow := strings.HasPrefix(line, "|")
		isItem := itemStart.MatchString(line)
		if inCode || isFence || isRow || isItem || strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			end(number)
		}
		switch {
		case isFence:
			inCode = !inCode
		case inCode, strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case isRow:
			for _, cell := range docs.Cells(line) {
				tables = append(tables, statement{number, plain(cell)})
			}
		default:
			block = append(block, itemStart.ReplaceAllString(line, ""))
		}
	}
	end(len(lines) + 1)
	return blocks, tables
}

// plain returns Markdown with a word for each piece of code, and links by their text. Lines
// begin where they did.
func plain(markdown string) string {
	markdown = codeSpan.ReplaceAllStringFunc(markdown, func(code string) string {
		return strings.Repeat("\n", strings.Count(code, "\n")) + "code"
	})
	return linkText.ReplaceAllString(markdown, "$1")
}

// sentences splits a paragraph.
func (s statement) sentences() []statement {
	var all []statement
	for rest, line := s.text, s.line; strings.TrimSpace(rest) != ""; {
		end := len(rest)
		if at := sentenceEnd.FindStringIndex(rest); at != nil {
			end = at[1]
		}
		text := strings.TrimLeft(rest[:end], " \n")
		begins := line + strings.Count(rest[:end-len(text)], "\n")
		all = append(all, statement{begins, strings.Join(strings.Fields(text), " ")})
		line += strings.Count(rest[:end], "\n")
		rest = rest[end:]
	}
	return all
}
