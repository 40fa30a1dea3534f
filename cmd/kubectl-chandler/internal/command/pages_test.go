// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// inText matches a whole command in a sentence.
var inText = regexp.MustCompile("`(kubectl chandler [a-z][^`]*)`")

// TestCommandLinesOfPages parses each command line of the plugin that the pages show, in blocks and in sentences.
func TestCommandLinesOfPages(t *testing.T) {
	const root = "../../../.."
	found := 0
	parse := func(_ string, shown docs.Command, words []string) {
		if len(words) < 2 || words[0] != "kubectl" || words[1] != "chandler" {
			return
		}
		found++
		if help, code := run(t, append(words[2:], "--help")...); code != 0 || !strings.Contains(help, "kubectl chandler "+words[2]) {
			t.Errorf("%s: %s: %s", shown.Where, strings.TrimSpace(shown.Text), help)
		}
	}
	docs.EachProgram(t, root, parse)
	pages, err := docs.Pages(root)
	must.Succeed(t, err)
	for _, page := range pages {
		for _, line := range inText.FindAllStringSubmatch(strings.Join(page.Lines(), "\n"), -1) {
			shown := docs.Command{Where: page.Path, Text: line[1]}
			for _, words := range shown.Programs() {
				parse(page.Path, shown, words)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d command lines only", found)
	}
}
