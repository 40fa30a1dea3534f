// SPDX-License-Identifier: Apache-2.0

// Package must fails tests at what they don't expect.
package must

import (
	"fmt"
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

// Equal fails the test if both differ, and shows how, and what it is about.
func Equal[T any](t testing.TB, want, got T, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%sit differs (-want +got):\n%s", fmt.Sprintln(about...), diff)
	}
}

// Len fails the test if a list has another length, and shows it, and what it is about.
func Len[T any](t testing.TB, want int, list []T, about ...any) {
	t.Helper()
	if len(list) != want {
		t.Errorf("%sgot %d, want %d: %+v", fmt.Sprintln(about...), len(list), want, list)
	}
}
