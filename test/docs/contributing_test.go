// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

const contributing = "CONTRIBUTING.md"

var (
	inCode   = regexp.MustCompile("`([^`]+)`")
	isPath   = regexp.MustCompile(`^[a-z0-9]+(/[\w.-]+)+$`)
	isTest   = regexp.MustCompile(`^Test[A-Z]\w+$`)
	declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestPlacesOfChanges finds places and tests that CONTRIBUTING.md names, and that aren't there.
func TestPlacesOfChanges(t *testing.T) {
	tests := map[string]bool{}
	eachGoFile(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, test := range declared.FindAllStringSubmatch(text, -1) {
				tests[test[1]] = true
			}
		}
	})
	page, err := Read(root, contributing)
	must.Succeed(t, err)
	places := 0
	for _, code := range inCode.FindAllStringSubmatch(strings.Join(page.lines, "\n"), -1) {
		switch named := code[1]; {
		case isPath.MatchString(named):
			places++
			if _, err := os.Stat(filepath.Join(root, named)); err != nil {
				t.Errorf("%s: there is no %s", contributing, named)
			}
		case isTest.MatchString(named) && !tests[named]:
			t.Errorf("%s: there is no %s", contributing, named)
		}
	}
	if places < 20 {
		t.Errorf("%s names %d places", contributing, places)
	}
}

// kindOfSource matches a question for a field of a source that only sources of one kind have.
var kindOfSource = regexp.MustCompile(`\.(OCI|HTTP|GitHub|Git)\b[^(:]`)

// TestKindsOfSources finds places that ask of which kind a source is, and that who adds a kind isn't told of.
func TestKindsOfSources(t *testing.T) {
	section := mustSection(t, contributing, "## A kind of source of charts and other content")
	known := []string{
		"internal/source/oci/", "internal/source/helm/", "internal/source/github/", "internal/source/git/", "internal/source/reference/github.go", "internal/source/reference/git.go", // of that kind alone
		"internal/migration/", // which makes sources of those of other products
	}
	for _, code := range inCode.FindAllStringSubmatch(strings.Join(section.lines, "\n"), -1) {
		known = append(known, code[1])
	}
	found := 0
	eachGoFile(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "api/") || strings.HasPrefix(name, "hack/") || !kindOfSource.MatchString(text) {
			return
		}
		if found++; !slices.ContainsFunc(known, func(place string) bool { return strings.HasPrefix(name+":", place) }) {
			t.Errorf("%s asks of which kind a source is; ask %s for what differs instead", name, "internal/source/reference/kinds.go")
		}
	})
	if found < 4 {
		t.Errorf("%d places ask of which kind a source is", found)
	}
}

// eachGoFile calls a function with the name and the text of each of the project's files in Go.
func eachGoFile(t *testing.T, do func(name, text string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != "." || name == "bin" || name == "out"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		do(name, string(text))
		return err
	})
	must.Succeed(t, err)
}
