// SPDX-License-Identifier: Apache-2.0

package github

import (
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/test/cost"
)

func TestHostileJSONTakesLittleMemory(t *testing.T) {
	cost.ExpectLittle(t, map[string]cost.Parsing{
		"files of a release": {Data: cost.ManyObjects(`{"tag_name":"v1","assets":[`, maxRelease), Refused: true, Parse: func(data []byte) error {
			_, err := parseRelease(data)
			return err
		}},
		"a list of releases": {Data: []byte("[" + strings.Repeat("{},", maxReleasePage/3-2) + "{}]"), Parse: func(data []byte) error {
			_, err := parseTags(data)
			return err
		}},
	})
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
