// SPDX-License-Identifier: Apache-2.0

package printing_test

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestOrigins prints origins as a table, those of what changed or can't be read, and hostile words.
func TestOrigins(t *testing.T) {
	is := func(path string, value any, from ...string) values.Origin {
		return values.Origin{Path: path, Value: value, From: from}
	}
	shown := printed(t, "Origins", &summary.Origins{Values: []values.Origin{
		is("image.tag", "1.4", "AddonStack platform, addons[web].valuesTemplate"), is("replicas", 3, "chart web 1.0.0"),
		is("resources", map[string]any{"cpu": 1, "memory": 2}, "chart web 1.0.0"),
	}})
	must.Equal(t, `
PATH        VALUE                  FROM
image.tag   "1.4"                  AddonStack platform, addons[web].valuesTemplate
replicas    3                      chart web 1.0.0
resources   {"cpu":1,"memory":2}   chart web 1.0.0
`, shown, "table")
	changed, gone := is("b", strings.Repeat("long", 50), "Secret x"), is("c", nil)
	changed.Changed, gone.Changed = true, true
	got := printed(t, "Origins", &summary.Origins{
		Values: []values.Origin{is("a\x1b[2J", "1", "Secret x", "ConfigMap y"), changed, gone},
		Unread: []summary.Unread{{From: "Secret x", Problem: "it is forbidden\x1b[2J"}},
	})
	for _, part := range []string{"Secret x or ConfigMap y\n", "Secret x, which has another value now\n", "null", "nowhere any more\n", "\nSecret x can't be read: it is forbidden?[2J\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q isn't in %s", part, got)
		}
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, strings.Repeat("long", 20)) {
		t.Error(got)
	}
}
