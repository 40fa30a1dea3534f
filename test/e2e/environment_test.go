// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strconv"
	"testing"
)

// environmentNumber returns the number that a variable has, or fallback if it isn't set.
func environmentNumber[N int | uint64](t *testing.T, name string, fallback N) N {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return N(n)
}
