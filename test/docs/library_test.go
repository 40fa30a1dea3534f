// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// TestLibraryInBrief finds the lines of docs/fleet.md in a program that is compiled.
func TestLibraryInBrief(t *testing.T) {
	page, err := Read(root, "docs/fleet.md")
	must.Succeed(t, err)
	blocks, err := page.Blocks("go")
	must.Succeed(t, err)
	program, err := os.ReadFile(filepath.Join(root, "examples/brief/main.go"))
	must.Succeed(t, err)
	for _, block := range blocks {
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(block.Text, "\n"), "\n", "\n\t") + "\n"
		if !strings.Contains(string(program), indented) {
			t.Errorf("%s isn't in examples/brief/main.go", block.Where)
		}
	}
	if len(blocks) == 0 {
		t.Error("docs/fleet.md has no code")
	}
}
