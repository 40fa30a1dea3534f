// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestLongComments(t *testing.T) {
	most := strings.TrimSpace(strings.Repeat("word ", maxSentence))
	for name, test := range map[string]struct {
		comment string
		want    []int // lines; the comment begins in line 3
	}{
		"as many words as may be": {"// " + most + ".\n// " + most + "!\n//\n// " + most, nil},
		"one more":                {"// One. Two\n// " + most + ".", []int{3}},
		"in a second sentence":    {"// One.\n// Two " + most + ".", []int{4}},
		"behind code":             {"// One:\n//\n//\ta " + most + "\n//\n// Two " + most + ".", []int{7}},
		"of a block":              {"/*\nOne " + most + ".\n*/", []int{3}},
		"items, markers and rows": {"//   - one " + most + "\n//     two\n// - one " + most + "\n// +one " + most + "\n// | one " + most + " |", nil},
		"a directive":             {"//go:generate one " + most, nil},
		"a version isn't an end":  {"// One 1.2.3 " + most, []int{3}},
		"code is a word":          {"// `one two three` " + strings.TrimPrefix(most, "word "), nil},
		"behind a statement":      {"var x = 1 // one " + most, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := longComments([]byte("package p\n\n" + test.comment + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, long := range found {
				got = append(got, long.line)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got lines %v, want %v", got, test.want)
			}
		})
	}
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
			blocks, _ := proseOf(strings.Split(test.page, "\n"))
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
	lines := strings.Split("One two three. Four five.\n\n| a b c | `d e f g h` |\n|---|---|\n| i [j k](l) m n | o \\| p |", "\n")
	want := []statement{{1, "One two three."}, {5, "i j k m n"}}
	if got := longIn(lines, 2, 4); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
