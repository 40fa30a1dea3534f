// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"strings"
	"testing"
	"time"
)

// Parsing is JSON as servers may send it, and what is to read it.
type Parsing struct {
	Data    []byte
	Parse   func(data []byte) error
	Refused bool
}

// ManyObjects is JSON of that size with as many objects as fit into the list that before
// begins, in an object. It is bounded in bytes, yet "{}," may become a struct of hundreds of
// them.
func ManyObjects(before string, size int) []byte {
	return []byte(before + strings.Repeat("{},", (size-len(before))/3-2) + "{}]}")
}

// ExpectLittle expects each to be read, or refused, in a second, and in 32 MiB of memory.
func ExpectLittle(t *testing.T, parsings map[string]Parsing) {
	for name, p := range parsings {
		t.Run(name, func(t *testing.T) {
			var err error
			took := Of(func() { err = p.Parse(p.Data) })
			if (err != nil) != p.Refused {
				t.Errorf("got %v", err)
			}
			took.Expect(t, time.Second, 32<<20)
			t.Logf("%d bytes: %s, %d MiB: %v", len(p.Data), took.Work, took.Held>>20, err)
		})
	}
}
