// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// noProse matches a line of a comment that is code, an item of a list, a marker or a row of a table.
var noProse = regexp.MustCompile(`^([ \t+|]|[-*] )`)

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
		for _, long := range longIn(lines, maxSentence, maxCell) {
			long.line += files.Position(comment.Pos()).Line - 1
			all = append(all, long)
		}
	}
	return all, nil
}
