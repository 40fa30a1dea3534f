// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/docs"
)

// inText matches a whole command in a sentence.
var inText = regexp.MustCompile("`(kubectl chandler [a-z][^`]*)`")

// TestCommandLinesOfPages parses each command line of the plugin that the pages show, in blocks and in sentences.
func TestCommandLinesOfPages(t *testing.T) {
	pages, err := docs.Pages("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		blocks, err := page.Blocks("console")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range inText.FindAllStringSubmatch(strings.Join(page.Lines(), "\n"), -1) {
			blocks = append(blocks, docs.Block{Where: page.Path, Text: "$ " + line[1]})
		}
		for _, block := range blocks {
			for _, shown := range block.Commands() {
				for _, words := range shown.Programs() {
					if len(words) < 2 || words[0] != "kubectl" || words[1] != "chandler" {
						continue
					}
					found++
					if help, code := run(t, append(words[2:], "--help")...); code != 0 || !strings.Contains(help, "kubectl chandler "+words[2]) {
						t.Errorf("%s: %s: %s", shown.Where, strings.TrimSpace(shown.Text), help)
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d command lines only", found)
	}
}
