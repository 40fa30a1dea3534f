// SPDX-License-Identifier: Apache-2.0

//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// notFiles are things that may be found in a file's place.
var notFiles = map[string]func(path string) error{
	"a directory":             func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	"a named pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"a link out of it":        func(path string) error { return os.Symlink("/etc/hostname", path) },
	"a link to itself":        func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"a link to nothing":       func(path string) error { return os.Symlink("nothing", path) },
	"a link to the directory": func(path string) error { return os.Symlink(".", path) },
}

// Whatever is in a file's place: nobody waits for it, and it isn't there for ever.
func TestWhatIsNoFileIsReplaced(t *testing.T) {
	for what, makeIt := range notFiles {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			s := w.process(0)
			a := archive("a", 300)
			digest := digestOf(a)
			files := map[string]struct {
				path string
				has  func() bool
				set  func()
			}{
				"archive": {w.file(a), func() bool { _, found := s.Get(digest); return found }, func() { put(s, a) }},
				"grants":  {w.file(a) + grantsOf, func() bool { return s.Granted(digest, "x") }, func() { s.Grant(digest, "x") }},
			}
			for _, name := range []string{"archive", "grants"} {
				for _, seen := range []bool{true, false} {
					file := files[name]
					if err := os.RemoveAll(file.path); err != nil {
						t.Fatal(err)
					}
					if err := makeIt(file.path); err != nil {
						t.Fatal(err)
					}
					endsSoon(t, name, func() {
						if seen && file.has() {
							t.Errorf("%s was read", name)
						}
						file.set()
						if !file.has() {
							t.Errorf("%s isn't kept in its place (seen before: %t)", name, seen)
						}
					})
				}
			}
			if len(w.lines) > 2 || testutil.ToFloat64(usable) != 1 { // the damaged archive is told
				t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
			}
		})
	}
}

// endsSoon fails if something takes for ever.
func endsSoon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: it waits for what doesn't come", what)
	}
}

// What a restart needs first may be a grant: that it can be read is told, too.
func TestEachReadTellsThatItWorks(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a := archive("a", 100)
	put(s, a)
	s.Grant(digestOf(a), "x")
	for name, read := range map[string]func() bool{
		"grant": func() bool { return s.Granted(digestOf(a), "x") },
	} {
		kept := w.dir + "-kept"
		if err := errors.Join(os.Rename(w.dir, kept), os.WriteFile(w.dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if read() || testutil.ToFloat64(usable) != 0 {
			t.Errorf("%s: what can't be read is usable", name)
		}
		if err := errors.Join(os.Remove(w.dir), os.Rename(kept, w.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if !read() || testutil.ToFloat64(usable) != 1 {
			t.Errorf("%s: usable is %v", name, testutil.ToFloat64(usable))
		}
	}
}
