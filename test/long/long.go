// SPDX-License-Identifier: Apache-2.0

// Package long marks tests that `make test` leaves out, as they take long. CI runs some of them, and `make test-all` all.
package long

import (
	"os"
	"testing"
)

// Env names the variable that says which tests that take long are run: "no" none, "some" those of CI, and all else all of them.
const Env = "CHANDLER_LONG_TESTS"

// Test skips a test where not all of those that take long are run.
func Test(t *testing.T) {
	t.Helper()
	if run := os.Getenv(Env); run == "no" || run == "some" {
		t.Skip("it takes long, and runs with make test-all")
	}
}

// InCI skips a test where none of those that take long are run.
func InCI(t *testing.T) {
	t.Helper()
	if os.Getenv(Env) == "no" {
		t.Skip("it takes long, and runs in CI and with make test-all")
	}
}
