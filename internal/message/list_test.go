// SPDX-License-Identifier: Apache-2.0

package message

import "testing"

func TestList(t *testing.T) {
	for want, texts := range map[string][]string{
		"":                 nil,
		"a":                {"a"},
		"a, b":             {"a", "b"},
		"a, b, and 1 more": {"a", "b", "c"},
		"a, b, and 3 more": {"a", "b", "c", "d", "e"},
	} {
		if got := List(texts, ", ", 2); got != want {
			t.Errorf("%q became %q, expected %q", texts, got, want)
		}
	}
}
