// SPDX-License-Identifier: Apache-2.0

package jsonsize_test

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		``:                               1,
		`1`:                              1,
		`[]`:                             1,
		` { } `:                          1,
		`[1]`:                            2,
		`[1, 2]`:                         3,
		`{"a": 1}`:                       3,
		`{"a": {"b": [1, {}], "c": []}}`: 9,
		`[[ ], {}, [[]]]`:                5,
		`",:[\"{,"`:                      1,
		`["\\", 1]`:                      3,
		`[1] [1]`:                        3,
		strings.Repeat("{},", 10):        11,
	} {
		if got := jsonsize.Values([]byte(text)); got != want {
			t.Errorf("%s has %d, want %d", text, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	for text, want := range map[string]int{
		`"x"`: 3,
		`{"a":"` + strings.Repeat("x", 92) + `"}`: 100,
		strings.Repeat("{},", 10):                 10*(2*jsonsize.Value) + 9*jsonsize.Element,
		`{"items":[{},{}]}`:                       6*jsonsize.Value + jsonsize.Object + 2*jsonsize.Item,
	} {
		if got := jsonsize.Of([]byte(text)); got != want {
			t.Errorf("%s has %d, want %d", text, got, want)
		}
	}
}
