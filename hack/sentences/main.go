// SPDX-License-Identifier: Apache-2.0

// Command sentences finds sentences of the pages and of Go comments that say too much at once. Run it from the
// project's root.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cluster-chandler/chandler/test/docs"
)

const (
	// maxSentence is how many words a sentence may have.
	maxSentence = 30
	// maxCell is how many words a cell of a table may have.
	maxCell = 40
	// generated is the page that a program writes.
	generated = "docs/reference/flags.md"
)

func main() {
	long, err := find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sentences:", err)
		os.Exit(2)
	}
	for _, line := range long {
		fmt.Println(line)
	}
	if len(long) > 0 {
		os.Exit(1)
	}
}

// find returns a line of text for each sentence and cell that is too long.
func find() (long []string, err error) {
	add := func(name string, found []statement) {
		for _, s := range found {
			long = append(long, fmt.Sprintf("%s:%d: %d words: %s", name, s.line, s.words(), s.text))
		}
	}
	pages, err := docs.Pages(".")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		if page.Path != generated {
			add(page.Path, longIn(page.Lines(), maxSentence, maxCell))
		}
	}
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			// Hidden folders, bin and out aren't part of the repository.
			if strings.HasPrefix(name, ".") && name != "." || name == "bin" || name == "out" {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(name) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := longComments(source)
		add(name, found)
		return err
	})
	return long, err
}
