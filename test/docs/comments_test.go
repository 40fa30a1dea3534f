// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noProse matches a line of a comment that is code, an item of a list, a marker or a row of a table.
var noProse = regexp.MustCompile(`^([ \t+|]|[-*] )`)

// TestPlainComments finds sentences of Go comments that say too much at once.
func TestPlainComments(t *testing.T) {
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// Hidden folders, bin and out aren't part of the repository.
			if strings.HasPrefix(name, ".") && name != "." || name == "bin" || name == "out" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated") {
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := longComments(source)
		for _, long := range found {
			t.Errorf("%s:%d: %d words: %s", name, long.line, long.words(), long.text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// longComments returns the sentences of a Go file's comments that have too many words.
func longComments(source []byte) ([]statement, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []statement
	for _, comment := range file.Comments {
		lines := strings.Split(comment.Text(), "\n")
		for i, line := range lines {
			if noProse.MatchString(line) {
				lines[i] = ""
			}
		}
		for _, long := range (Page{lines: lines}).long(maxSentence, maxCell) {
			long.line += files.Position(comment.Pos()).Line - 1
			all = append(all, long)
		}
	}
	return all, nil
}

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
