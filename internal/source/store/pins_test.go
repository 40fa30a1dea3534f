// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPins(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	first, second := digestOf(archive("a", 10)), digestOf(archive("b", 10))
	expectPin := func(s *Store, name, want string) {
		t.Helper()
		if got, known := s.Pinned(name); got != want && known || known != (want != "") {
			t.Errorf("%s is %q, %t, want %q", name, got, known, want)
		}
	}
	expectPin(s, "x", "")
	s.Pin("x", first)
	s.Pin("y", "sha256:no digest")
	s.Pin("../z", second)
	expectPin(s, "x", first)
	expectPin(s, "y", "")
	expectPin(w.process(0), "../z", second)
	s.Pin("x", second)
	expectPin(s, "x", second)

	files := ls(t, filepath.Join(w.dir, layout))
	if len(files) != 2 {
		t.Fatalf("there is %q", files)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, pinSuffix) || !isKept(file) {
			t.Errorf("there is %s", file)
		}
	}
	t.Run("they are as old as their last use", func(*testing.T) {
		w.clock.Step(time.Hour)
		expectPin(s, "x", second)
		large := archive("c", 1000)
		put(s, large) // clears away what is left of crashes, and no pin
		expectPin(s, "../z", second)
	})
	t.Run("what is no digest goes", func(t *testing.T) {
		for _, damaged := range []string{"", "sha256:", strings.Repeat("x", 1000)} {
			if err := os.WriteFile(filepath.Join(w.dir, layout, hashOf("x")+pinSuffix), []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			expectPin(s, "x", "")
		}
		if files := ls(t, filepath.Join(w.dir, layout)); len(files) != 2 {
			t.Errorf("there is %q", files)
		}
	})
	var none *Store
	none.Pin("x", first)
	expectPin(none, "x", "")
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}
