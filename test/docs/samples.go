// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// Samples are the commands of all pages whose output the pages show.
func Samples(t testing.TB, root string) []Command {
	t.Helper()
	pages, err := Pages(root)
	must.Succeed(t, err)
	var samples []Command
	for _, page := range pages {
		blocks, err := page.AllBlocks()
		must.Succeed(t, err)
		for _, block := range blocks {
			if block.Language != "console" {
				continue
			}
			for _, command := range block.Commands() {
				if command.Output != "" {
					samples = append(samples, command)
				}
			}
		}
	}
	return samples
}

// Name of a sample: its page and its command, as in "docs/health.md: kubectl get clusteraddon prod". A test that has the name in its
// source, or in its data, compares the sample.
func (c Command) Name() string {
	page, _, _ := strings.Cut(c.Where, ":")
	return page + ": " + strings.TrimSpace(c.Text)
}

// Sample returns the sample of a name.
func Sample(t testing.TB, root, name string) Command {
	t.Helper()
	for _, sample := range Samples(t, root) {
		if sample.Name() == name {
			return sample
		}
	}
	t.Fatalf("no page has the sample %s", name)
	return Command{}
}

// Compare compares what a run of the command printed with what the page shows.
func (c Command) Compare(t testing.TB, printed string) {
	t.Helper()
	if plain(printed) != plain(c.Output) {
		t.Errorf("%s: %s prints\n%s\nand the page shows\n%s", c.Where, strings.TrimSpace(c.Text), printed, c.Output)
	}
}

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	ages   = regexp.MustCompile(`\b([0-9]+[smhd])+\b`)
	ports  = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	logs   = regexp.MustCompile(`(?m)^[IWE][0-9]{4} [0-9:.]+ .*\n`) // of client-go in kubectl, as when a watch ends with the command
)

// plain returns a text without what differs from run to run: ages, ports on this machine, the width of columns, and kubectl's own log.
func plain(text string) string {
	text = strings.ReplaceAll(spaces.ReplaceAllString(logs.ReplaceAllString(text, ""), " "), " \n", "\n")
	return strings.TrimSpace(ages.ReplaceAllString(ports.ReplaceAllString(text, "127.0.0.1:PORT"), "AGE"))
}
