// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// maxSentence is how many words a sentence of a page may have.
	maxSentence = 30
	// maxCell is how many words a cell of a table may have.
	maxCell = 40
	// generated is the page that a program writes.
	generated = "docs/reference/flags.md"
)

var (
	codeSpan    = regexp.MustCompile("`[^`]+`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)\s]+\)`)
	sentenceEnd = regexp.MustCompile(`[.!?][*"')\]]*(\s|$)`)
	itemStart   = regexp.MustCompile(`^\s*([-*]|[0-9]+[.])\s+`)
)

// TestPlainEnglish finds sentences and cells that say too much at once.
func TestPlainEnglish(t *testing.T) {
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if page.Path == generated {
			continue
		}
		for _, long := range page.long(maxSentence, maxCell) {
			t.Errorf("%s:%d: %d words: %s", page.Path, long.line, long.words(), long.text)
		}
	}
}

// statement is a sentence, or a cell of a table, in plain text.
type statement struct {
	line int // where it begins, from 1
	text string
}

// words counts what stands between spaces.
func (s statement) words() int { return len(strings.Fields(s.text)) }

// long returns the sentences and cells of the page that have more words than they may.
func (p Page) long(sentence, cell int) []statement {
	var found []statement
	text, tables := p.prose()
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

// prose returns the paragraphs and list items of the page, and the cells of its tables. It
// leaves out code and headings.
func (p Page) prose() (blocks, tables []statement) {
	var block []string
	var inCode bool
	end := func(line int) {
		if len(block) > 0 {
			blocks = append(blocks, statement{line - len(block), plain(strings.Join(block, "\n"))})
		}
		block = nil
	}
	for i, line := range p.lines {
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
			for _, cell := range cells(line) {
				tables = append(tables, statement{number, plain(cell)})
			}
		default:
			block = append(block, itemStart.ReplaceAllString(line, ""))
		}
	}
	end(len(p.lines) + 1)
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

func TestSentences(t *testing.T) {
	for name, test := range map[string]struct {
		page string
		want []statement
	}{
		"a sentence over two lines": {"One two.\nThree\nfour. Five.", []statement{{1, "One two."}, {2, "Three four."}, {3, "Five."}}},
		"no end":                    {"It is one of:\n\n- a b\n  c\n- d", []statement{{1, "It is one of:"}, {3, "a b c"}, {5, "d"}}},
		"numbered items":            {"1. One.\n2. Two.", []statement{{1, "One."}, {2, "Two."}}},
		"code is a word":            {"Run `go test ./...` now, `a b`, and\n`c\nd` too.", []statement{{1, "Run code now, code, and code too."}}},
		"a link is its text":        {"See [two words](a.md#b) and [`x y`](c.md).", []statement{{1, "See two words and code."}}},
		"numbers have dots":         {"Version 1.17.4 is here. `a.b` too.", []statement{{1, "Version 1.17.4 is here."}, {1, "code too."}}},
		"an end in bold, or quoted": {"**One.** (Two.) \"Three!\" Four", []statement{{1, "**One.**"}, {1, "(Two.)"}, {1, `"Three!"`}, {1, "Four"}}},
		"a heading is none":         {"# A title. Two.\nOne.", []statement{{2, "One."}}},
		"code blocks are none":      {"One\n```yaml\na: b. c.\n```\ntwo.", []statement{{1, "One"}, {5, "two."}}},
		"tables are none":           {"One\n| a. b. | c |\n|---|---|\ntwo.", []statement{{1, "One"}, {4, "two."}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []statement
			blocks, _ := Page{lines: strings.Split(test.page, "\n")}.prose()
			for _, block := range blocks {
				got = append(got, block.sentences()...)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLongStatements(t *testing.T) {
	page := Page{lines: strings.Split("One two three. Four five.\n\n| a b c | `d e f g h` |\n|---|---|\n| i [j k](l) m n | o \\| p |", "\n")}
	want := []statement{{1, "One two three."}, {5, "i j k m n"}}
	if got := page.long(2, 4); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
