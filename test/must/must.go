// SPDX-License-Identifier: Apache-2.0

// Package must fails tests at what they don't expect.
package must

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Succeed ends the test if there is an error.
func Succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test if both differ, and shows how.
func Equal(t testing.TB, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it differs (-want +got):\n%s", diff)
	}
}
