// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestCommits(t *testing.T) {
	published := []string{"heads/main@2", "heads/v1.0.0@3", "tags/v1.0.0@1", "tags/v1.1.0@2", "tags/main@9", "tags/v2.0.0@2"}
	tags, err := versions.ParseRange("1.x")
	must.Succeed(t, err)
	inRange := versions.Within{Line: tags, Before: "tags/", After: "@"}
	for name, tc := range map[string]struct {
		line   versions.Line
		newest string
		// before is a version of the line, and taken whether the newest one is taken in its place.
		before string
		taken  bool
		// other is of another line.
		other string
	}{
		"a branch":                 {versions.Latest{Prefix: "heads/main@"}, "heads/main@2", "heads/main@1", true, "tags/main@9"},
		"a branch that stays":      {versions.Latest{Prefix: "heads/main@"}, "heads/main@2", "heads/main@2", false, "heads/mai@2"},
		"a tag":                    {versions.Latest{Prefix: "tags/v1.0.0@", Fixed: true}, "tags/v1.0.0@1", "tags/v1.0.0@1", false, "heads/v1.0.0@3"},
		"a tag that moved":         {versions.Latest{Prefix: "tags/v1.0.0@", Fixed: true}, "tags/v1.0.0@1", "tags/v1.0.0@7", false, "tags/v1.0@1"},
		"an artifact":              {versions.Latest{}, "heads/main@2", "x", true, ""},
		"a range":                  {inRange, "tags/v1.1.0@2", "tags/v1.0.0@1", true, "tags/v2.0.0@2"},
		"a range with a tag moved": {inRange, "tags/v1.1.0@2", "tags/v1.1.0@1", false, "heads/v1.0.0@3"},
	} {
		t.Run(name, func(t *testing.T) {
			newest, err := tc.line.Newest(published)
			must.Succeed(t, err)
			must.Equal(t, tc.newest, newest, "newest")
			must.Equal(t, true, tc.line.Allows(tc.before), tc.before)
			must.Equal(t, false, tc.line.Allows(tc.other), tc.other)
			must.Equal(t, tc.taken, tc.line.Newer(newest, tc.before), "newer than before")
			must.Equal(t, true, tc.line.Newer(newest, ""), "newer than none")
			must.Equal(t, false, tc.line.Newer(tc.other, newest), "another line's")
			_, err = tc.line.Newest(nil)
			must.Equal(t, true, err != nil, "there is none")
		})
	}
}
