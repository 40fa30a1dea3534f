// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

const nobody = 65534

// asUser does something as this user. Root becomes it for the time; who isn't root
// stays who he is.
func asUser(t *testing.T, id int, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	become := func(id int) {
		if err := syscall.Setresuid(-1, id, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Setresgid(-1, id, -1); err != nil {
		t.Fatal(err)
	}
	become(id)
	defer func() {
		become(0)
		if err := syscall.Setresgid(-1, 0, -1); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// userWorld is a directory that the user may write to.
func userWorld(t *testing.T, id int) *world {
	t.Helper()
	w := newWorld(t)
	if os.Getuid() != 0 {
		return w
	}
	parent := filepath.Dir(w.dir)
	for _, path := range []string{filepath.Dir(parent), parent} { // a test's directories are root's alone
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(w.dir, id, id); err != nil {
		t.Fatal(err)
	}
	asUser(t, id, func() {
		if _, err := os.Stat(w.dir); err != nil {
			t.Skipf("TMPDIR is for one user alone: %v", err)
		}
	})
	return w
}

// A directory that isn't ours, and can't be removed: it is left alone.
func TestWhatCantBeRemovedIsInNobodysWay(t *testing.T) {
	w := userWorld(t, nobody)
	asUser(t, nobody, func() {
		w.process(3500) // makes the folders
		stray := filepath.Join(w.dir, layout, "old")
		if err := os.MkdirAll(filepath.Join(stray, "x"), 0o700); err != nil {
			t.Error(err)
		}
		old := w.clock.Now().Add(-24 * time.Hour)
		if err := os.Chtimes(stray, old, old); err != nil {
			t.Error(err)
		}
		if err := os.Chmod(stray, 0o500); err != nil {
			t.Error(err)
		}
		defer func() { _ = os.Chmod(stray, 0o700) }() // so the test's end can remove it
		info, err := os.Stat(stray)
		if err != nil {
			t.Error(err)
			return
		}
		s := w.process(3500 + info.Size())
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			w.clock.Step(time.Hour)
			one := archive(name, 1000)
			put(s, one)
			if _, found := s.Get(digestOf(one)); !found {
				t.Errorf("%s isn't kept", name)
			}
		}
		if files := ls(t, filepath.Join(w.dir, layout)); len(files) != 4 { // three archives fit in beside it
			t.Errorf("there is %q", files)
		}
		if len(w.lines) > 0 {
			t.Errorf("the log says %q", w.lines)
		}
	})
}

// As when the manager gets another user, on a volume that its group may write to.
func TestFilesOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	for what, mode := range map[string]os.FileMode{"that can be read": 0o660, "that can't be read": 0o600} {
		t.Run(what, func(t *testing.T) {
			w := userWorld(t, nobody)
			a := archive("a", 1000)
			digest := digestOf(a)
			before := w.process(2500)
			put(before, a)
			before.Grant(digest, "early")
			group(t, filepath.Join(w.dir, layout), mode)
			readable := mode == 0o660
			corrupted := testutil.ToFloat64(corruptions)
			asUser(t, nobody, func() {
				w.clock.Step(time.Hour)
				s := w.process(2500)
				if got := s.Granted(digest, "early"); got != readable {
					t.Errorf("granted: %t", got)
				}
				if _, found := s.Get(digest); found != readable {
					t.Errorf("found: %t", found)
				}
				put(s, archive("b", 1000))
				if !readable {
					put(s, a)
				}
				// It is in use as what is one's own: others don't take its room.
				put(s, archive("c", 1000))
				s.Grant(digest, "late")
				if _, found := s.Get(digest); !found || !s.Granted(digest, "late") {
					t.Errorf("kept: %t, granted: %t", found, s.Granted(digest, "late"))
				}
				w.clock.Step(time.Hour)
				large := archive("l", 2400)
				put(s, large)
				if _, found := s.Get(digestOf(large)); !found {
					t.Error("others' files take room for ever")
				}
			})
			if len(w.lines) > 0 || testutil.ToFloat64(usable) != 1 {
				t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
			}
			if got := testutil.ToFloat64(corruptions) - corrupted; got != 0 {
				t.Errorf("%v corruptions were counted", got)
			}
		})
	}
}

// As on a volume that the manager's user may not write to, or not even look at.
func TestDirectoryOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a directory of another user")
	}
	for _, mode := range []os.FileMode{0o700, 0o750} {
		t.Run(mode.String(), func(t *testing.T) {
			w := userWorld(t, nobody)
			a, b := archive("a", 1000), archive("b", 1000)
			before := w.process(0)
			put(before, a)
			before.Grant(digestOf(a), "x")
			group(t, filepath.Join(w.dir, layout), 0o640)
			if err := os.Chmod(filepath.Join(w.dir, layout), mode); err != nil {
				t.Fatal(err)
			}
			readable := mode == 0o750
			asUser(t, nobody, func() {
				s := w.process(0)
				for range 3 {
					w.clock.Step(time.Hour)
					put(s, b)
					s.Grant(digestOf(a), "y")
					if _, found := s.Get(digestOf(a)); found != readable || s.Granted(digestOf(a), "x") != readable {
						t.Errorf("found: %t, granted: %t", found, s.Granted(digestOf(a), "x"))
					}
				}
			})
			if len(w.lines) != 1 || !strings.Contains(w.lines[0], "permission denied") || testutil.ToFloat64(usable) != 0 {
				t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
			}
		})
	}
}

// group gives nobody's group what is in the directory, as the kubelet does for an
// fsGroup, but for the files' mode.
func group(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := os.Chown(path, 0, nobody); err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o770|os.ModeSetgid)
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}
