// SPDX-License-Identifier: Apache-2.0

// Package long marks tests that `make test` leaves to `make test-all`, as they take long.
package long

import (
	"os"
	"testing"
)

// Env names the variable that is "no" where tests that take long are left out.
const Env = "CHANDLER_LONG_TESTS"

// Test skips a test where those that take long are left out.
func Test(t *testing.T) {
	t.Helper()
	if os.Getenv(Env) == "no" {
		t.Skip("it takes long, and runs with make test-all")
	}
}
