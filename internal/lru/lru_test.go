// SPDX-License-Identifier: Apache-2.0

package lru

import "testing"

func TestKeepsWhatWasUsedLast(t *testing.T) {
	sizes := New[string](10, func(size int64) int64 { return size })
	sizes.Put("a", 4)
	sizes.Put("b", 4)
	sizes.Get("a")
	sizes.Put("c", 4) // drops b
	sizes.Put("huge", 11)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "huge": false} {
		if _, found := sizes.Get(key); found != want {
			t.Errorf("%s found: %v, want %v", key, found, want)
		}
	}
	sizes.Put("a", 2)
	sizes.Put("d", 4)
	if kept := sizes.All(); len(kept) != 3 || kept["a"] != 2 || sizes.used != 10 {
		t.Errorf("kept %v with %d used, want a, c and d with 10", kept, sizes.used)
	}
	sizes.Put("a", 11)
	if _, found := sizes.Get("a"); found {
		t.Error("the value before one that doesn't fit is still there")
	}
}
