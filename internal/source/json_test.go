// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
	"time"

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
		"layers of a chart": {many(`{"layers":[`, maxManifest), func(data []byte) error {
			_, err := chartOfManifest(data)
			return err
		}, true},
		"layers of files": {many(`{"layers":[`, maxManifest), func(data []byte) error {
			_, err := filesOfManifest(data)
			return err
		}, true},
		"layers that are files": {many(`{"layers":[`, maxManifest), func(data []byte) error {
			_, _, err := layersOf(data)
			return err
		}, true},
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
