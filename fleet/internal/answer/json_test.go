// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"
	"testing"
)

func TestJSONSizeCountsWhatADecoderKeeps(t *testing.T) {
	for stream, want := range map[string]int{
		"": 0, `"x": 1`: 6, `{}`: anyValue, `{}      {}`: 8, `{}      `: 6, `{"a`: anyValue + object, `{"a":1}`: 2*anyValue + object,
		`{"a":"}{\",[{"}`: 2*anyValue + object, `{"a":"\\"}{}`: 2*anyValue + object, `{"a":1}{"bc":[{}]}`: 4*anyValue + object + item,
		`{"a":"` + strings.Repeat("x", 92) + `"}`: 100, `{}` + strings.Repeat(" ", 100): 100,
		`{"a":[{},{"b":[{}, 1]}]}`: 10*anyValue + 2*object + 2*item + element, `{"a" : [ {} , [ {} ] ] }`: 7*anyValue + object + item + element,
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
