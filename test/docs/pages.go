// SPDX-License-Identifier: Apache-2.0

// Package docs reads the project's pages, for tests that hold them to the truth.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Page is a page of the documentation.
type Page struct {
	// Path from the project's root, as in "docs/security.md".
	Path  string
	lines []string
}

// Lines of the page.
func (p Page) Lines() []string { return p.lines }

// Pages are the README, CONTRIBUTING.md and all pages of docs/.
func Pages(root string) ([]Page, error) {
	paths := []string{"README.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var pages []Page
	for _, path := range paths {
		page, err := Read(root, path)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Read reads one page.
func Read(root, path string) (Page, error) {
	data, err := os.ReadFile(filepath.Join(root, path))
	return Page{Path: path, lines: strings.Split(string(data), "\n")}, err
}

// Block is what a page shows between lines of "```".
type Block struct {
	// Where it begins, as in "docs/security.md:16".
	Where string
	Text  string
	// Language is the first word of the fence, "" for none.
	Language string
	// Untested is so of blocks whose fence has the word "no-test": no test can run them.
	Untested bool
}

// Blocks are the page's blocks in a language, as "yaml", that a test can run.
func (p Page) Blocks(language string) ([]Block, error) {
	all, err := p.AllBlocks()
	return slices.DeleteFunc(all, func(b Block) bool { return b.Language != language || b.Untested }), err
}

// AllBlocks are the page's blocks, in their order.
func (p Page) AllBlocks() ([]Block, error) {
	var blocks []Block
	var block *Block // that the line is in
	for i, line := range p.lines {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && block == nil:
			language, mark, _ := strings.Cut(fence, " ")
			block = &Block{Where: fmt.Sprintf("%s:%d", p.Path, i+1), Language: language, Untested: mark == "no-test"}
			if mark != "" && !block.Untested {
				return nil, fmt.Errorf("%s: the fence has %q, which isn't no-test", block.Where, mark)
			}
		case isFence:
			blocks = append(blocks, *block)
			block = nil
		case block != nil:
			block.Text += line + "\n"
		}
	}
	if block != nil {
		return nil, fmt.Errorf("%s: the block doesn't end", block.Where)
	}
	return blocks, nil
}

// Section is the part of the page below a heading, as "## Status", up to the next heading.
func (p Page) Section(heading string) (Page, error) {
	start := slices.Index(p.lines, heading) + 1
	if start == 0 {
		return Page{}, fmt.Errorf("%s has no heading %q", p.Path, heading)
	}
	end := start
	for inBlock := false; end < len(p.lines) && (inBlock || !strings.HasPrefix(p.lines[end], "#")); end++ {
		if strings.HasPrefix(p.lines[end], "```") {
			inBlock = !inBlock
		}
	}
	return Page{Path: p.Path, lines: p.lines[start:end]}, nil
}

// Row is a row of a table.
type Row struct {
	cells []string
}

// Rows are those of all tables whose first column has a heading, as "field".
func (p Page) Rows(heading string) []Row {
	var rows []Row
	var table bool
	for i, line := range p.lines {
		if !strings.HasPrefix(line, "|") {
			table = false
			continue
		}
		row := Row{cells: Cells(line)}
		switch {
		case i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "|---"):
			table = row.cells[0] == heading
		case table && !strings.HasPrefix(line, "|---"):
			rows = append(rows, row)
		}
	}
	return rows
}

// Cells are the texts between the bars of a line. A bar may be in one as "\|".
func Cells(line string) []string {
	const bar = "\x00"
	line = strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|")
	var texts []string
	for cell := range strings.SplitSeq(line, "|") {
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return texts
}

// Text of the column, from 0.
func (r Row) Text(column int) string { return r.cells[column] }

// Code is what is in backquotes in the column, from 0.
func (r Row) Code(column int) []string {
	var code []string
	for i, part := range strings.Split(r.cells[column], "`") {
		if i%2 == 1 {
			code = append(code, part)
		}
	}
	return code
}
