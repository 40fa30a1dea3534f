// SPDX-License-Identifier: Apache-2.0

package github

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/test/cost"
)

// What servers send as JSON is bounded in bytes, yet "{}," may become a struct of hundreds
// of them.
func TestHostileJSONTakesLittleMemory(t *testing.T) {
	many := func(before string, size int) []byte {
		return []byte(before + strings.Repeat("{},", (size-len(before))/3-2) + "{}]}")
	}
	for name, tc := range map[string]struct {
		data    []byte
		parse   func(data []byte) error
		refused bool
	}{
		"files of a release": {many(`{"tag_name":"v1","assets":[`, maxRelease), func(data []byte) error {
			_, err := parseRelease(data)
			return err
		}, true},
		"a list of releases": {[]byte("[" + strings.Repeat("{},", maxReleasePage/3-2) + "{}]"), func(data []byte) error {
			_, err := parseTags(data)
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { err = tc.parse(tc.data) })
			if (err != nil) != tc.refused {
				t.Errorf("got %v", err)
			}
			took.Expect(t, time.Second, 32<<20)
			t.Logf("%d bytes: %s, %d MiB: %v", len(tc.data), took.Work, took.Held>>20, err)
		})
	}
}

func FuzzRelease(f *testing.F) {
	f.Add([]byte(`{"tag_name": "1", "assets": [{"id": 1, "name": "a", "size": 3, "digest": "sha256:00"}]}`))
	f.Add([]byte(`[{"tag_name": "1", "draft": true}, {"tag_name": "2"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tags, err := parseTags(data); err == nil && slices.Contains(tags, "") {
			t.Error("a release without a tag is listed")
		}
		found, err := parseRelease(data)
		if err != nil {
			return
		}
		parts, err := partsIn(filesIn(found), artifact.Limits{}.WithDefaults())
		if err != nil {
			return
		}
		if listing, complete := promisedParts(parts); complete {
			if _, listed, err := layout.Parts(listing, artifact.Limits{}.WithDefaults()); !listed || err != nil {
				t.Errorf("its list can't be read: %v\n%s", err, listing)
			}
		}
	})
}
