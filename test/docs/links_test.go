// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // of a heading, in the name that links have for it
)

// goFile matches the path of a Go file in a sentence, from the root.
var goFile = regexp.MustCompile("`((?:internal|controllers|fleet|cmd|webhooks|hack|test|api)/[\\w/-]+\\.go)`")

// TestLinks follows all links between the pages, and wants one to each of them.
func TestLinks(t *testing.T) {
	pages, err := Pages(root)
	must.Succeed(t, err)
	headings := map[string]map[string]bool{}
	for _, page := range pages {
		headings[page.Path] = page.anchors()
	}
	linked := map[string]bool{}
	for _, page := range pages {
		for _, found := range goFile.FindAllStringSubmatch(strings.Join(page.lines, "\n"), -1) {
			if _, err := os.Stat(path.Join(root, found[1])); err != nil {
				t.Errorf("%s: there is no %s", page.Path, found[1])
			}
		}
		for _, found := range link.FindAllStringSubmatch(strings.Join(page.lines, "\n"), -1) {
			file, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := page.Path
			if file != "" {
				to = path.Join(path.Dir(page.Path), file)
				linked[to] = true
			}
			if _, err := os.Stat(path.Join(root, to)); err != nil {
				t.Errorf("%s: there is no %s", page.Path, found[1])
			} else if anchor != "" && !headings[to][anchor] {
				t.Errorf("%s: there is no heading for %s", page.Path, found[1])
			}
		}
	}
	for name, pattern := range map[string]string{"rules.yaml": "runbook_url: ", "dashboard.json": `"url": "`} {
		data, err := os.ReadFile(path.Join(root, "config/monitoring", name))
		must.Succeed(t, err)
		found := regexp.MustCompile(pattern+`https://[^\s"]+/blob/main/([^\s"#]+)(?:#([^\s"]+))?`).FindAllStringSubmatch(string(data), -1)
		if len(found) != strings.Count(string(data), pattern) || len(found) == 0 {
			t.Errorf("%s: %d addresses are pages", name, len(found))
		}
		for _, address := range found {
			if page, anchor := address[1], address[2]; headings[page] == nil || anchor != "" && !headings[page][anchor] {
				t.Errorf("%s: there is no %s#%s", name, page, anchor)
			}
		}
	}
	for _, page := range pages {
		if !linked[page.Path] && page.Path != "README.md" {
			t.Errorf("no page has a link to %s", page.Path)
		}
	}
}

// anchors are the names of the page's headings in links.
func (p Page) anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, line := range p.lines {
		if _, heading, ok := strings.Cut(line, "# "); ok && strings.HasPrefix(line, "#") {
			anchors[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")] = true
		}
	}
	return anchors
}
