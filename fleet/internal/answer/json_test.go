// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

func TestJSONSizeCountsWhatADecoderKeeps(t *testing.T) {
	for stream, want := range map[string]int{
		"": 0, `"x": 1`: 6, `{}`: jsonsize.Value, `{}      {}`: 8, `{}      `: 6, `{"a`: jsonsize.Value + jsonsize.Object, `{"a":1}`: 2*jsonsize.Value + jsonsize.Object,
		`{"a":"}{\",[{"}`: 2*jsonsize.Value + jsonsize.Object, `{"a":"\\"}{}`: 2*jsonsize.Value + jsonsize.Object, `{"a":1}{"bc":[{}]}`: 4*jsonsize.Value + jsonsize.Object + jsonsize.Item,
		`{"a":"` + strings.Repeat("x", 92) + `"}`: 100, `{}` + strings.Repeat(" ", 100): 100,
		`{"a":[{},{"b":[{}, 1]}]}`: 10*jsonsize.Value + 2*jsonsize.Object + 2*jsonsize.Item + jsonsize.Element, `{"a" : [ {} , [ {} ] ] }`: 7*jsonsize.Value + jsonsize.Object + jsonsize.Item + jsonsize.Element,
	} {
		whole, parts := &jsonSize{}, &jsonSize{}
		if got := whole.add([]byte(stream), false); got != want {
			t.Errorf("%s has %d, want %d", stream, got, want)
		}
		got := 0
		for _, b := range []byte(stream) {
			got = max(got, parts.add([]byte{b}, false))
		}
		if got != want {
			t.Errorf("%s, byte by byte, has %d, want %d", stream, got, want)
		}
	}
}
