// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/cost"
)

// Versions that take parsers long, or become much larger than they are.
func TestCostOfHostileVersions(t *testing.T) {
	const size = 16 << 20
	var keys strings.Builder
	for i := range 2800 {
		fmt.Fprintf(&keys, "%x,", i+4096)
	}
	yaml := func(field string) string {
		item := "  - version: 1.0.0\n    " + field + "\n"
		return "entries:\n  demo:\n" + strings.Repeat(item, size/len(item))
	}
	x := strings.Repeat("x", 4<<10)
	for name, index := range map[string]string{
		"keys that are compared with each other": yaml("urls: {" + keys.String() + "}"),
		"many values":                            yaml("urls: [" + strings.Repeat("0,", 7<<10) + "0]"),
		"aliases":                                yaml("urls: [&x " + x + strings.Repeat(",*x", 1000) + "]"),
		"JSON: many addresses":                   `{"entries":{"demo":[{"version":"1.0.0","urls":[` + strings.Repeat(`"",`, size/3-100) + `""]}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { _, err = Read(strings.NewReader(index), Limits{}) })
			t.Logf("%d bytes: %s, %d MiB: %v", len(index), took.Work, took.Held>>20, err)
			took.Expect(t, 2*time.Second, 96<<20)
		})
	}
}
