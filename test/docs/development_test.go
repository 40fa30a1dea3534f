// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

const development = "docs/development.md"

var (
	// entryOfMap matches an entry of the map: its indentation, its path below the entry that it is in, and its text.
	entryOfMap = regexp.MustCompile(`^(|  )([\w.-]+(?:/[\w.-]+)*(?:/|\.go))(?: +(.*))?$`)
	// placeInText matches a folder or a file in Go.
	placeInText = regexp.MustCompile(`[\w-]+(?:/[\w-]+)*(?:/|\.go)(?:$|[\s,.;:)])`)
)

// placesOfMap returns the places that the map of the code names, each with the entry's path before it.
func placesOfMap(t *testing.T) map[string]bool {
	t.Helper()
	blocks, err := mustSection(t, development, "# Development").AllBlocks()
	must.Succeed(t, err)
	places, top, within := map[string]bool{}, "", ""
	for line := range strings.SplitSeq(blocks[0].Text, "\n") {
		if is := entryOfMap.FindStringSubmatch(line); is != nil {
			if within, line = is[2], is[3]; is[1] == "" {
				top = within
			} else {
				within = path.Join(top, within)
			}
			places[path.Clean(within)] = true
		}
		for _, named := range placeInText.FindAllString(line, -1) {
			places[path.Join(within, strings.TrimRight(named, " ,.;:)"))] = true
		}
	}
	return places
}

// TestMapOfTheCode compares the map of development.md with the tree. It names each package of the product.
func TestMapOfTheCode(t *testing.T) {
	places := placesOfMap(t)
	for place := range places {
		if _, err := os.Stat(filepath.Join(root, place)); err != nil {
			t.Errorf("%s: there is no %s", development, place)
		}
	}
	eachGoFile(t, func(name, _ string) {
		folder := path.Dir(name)
		if isProduct := !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") && !strings.Contains(name, "/testdata/"); isProduct && folder != "." && !places[folder] {
			places[folder] = true // it is told once
			t.Errorf("%s doesn't name %s", development, folder)
		}
	})
	if len(places) < 50 {
		t.Errorf("%s names %d places", development, len(places))
	}
}
