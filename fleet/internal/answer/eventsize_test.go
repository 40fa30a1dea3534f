// SPDX-License-Identifier: Apache-2.0

package answer

import "testing"

func TestEventSizeCountsWhatADecoderKeeps(t *testing.T) {
	for stream, want := range map[string]int{
		`{"a":1}`: 7, `{"a":1}{"bc":[{}]}`: 11, `{"a":"}{\"}"}`: 13, `{"a`: 3, `{} {}    `: 4, `{"a":"\\"}{}`: 10, "": 0, `"x": 1`: 6,
	} {
		whole, parts := &eventSize{}, &eventSize{}
		if got := whole.add([]byte(stream)); got != want {
			t.Errorf("%s has %d, want %d", stream, got, want)
		}
		got := 0
		for _, b := range []byte(stream) {
			got = max(got, parts.add([]byte{b}))
		}
		if got != want {
			t.Errorf("%s, byte by byte, has %d, want %d", stream, got, want)
		}
	}
}
