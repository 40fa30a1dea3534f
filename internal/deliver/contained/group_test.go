// SPDX-License-Identifier: Apache-2.0

package contained_test

import (
	"errors"
	"testing"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
)

// TestGroup waits for all functions, returns the first error, and brings a panic to whoever waits.
func TestGroup(t *testing.T) {
	errFirst := errors.New("first")
	group, ctx := contained.NewGroup(t.Context())
	group.Go(func() error { return errFirst })
	group.Go(func() error { <-ctx.Done(); return ctx.Err() })
	if err := group.Wait(); !errors.Is(err, errFirst) {
		t.Errorf("it ends with %v", err)
	}
	group, _ = contained.NewGroup(t.Context())
	ended := false
	group.Go(func() error { panic("wrong") })
	group.Go(func() error { ended = true; return nil })
	defer func() {
		there, is := recover().(*contained.Panic)
		if !is || there.Value != "wrong" || len(there.Stack) == 0 || !ended {
			t.Errorf("it panics with %v", there)
		}
	}()
	_ = group.Wait()
	t.Error("it doesn't panic")
}
