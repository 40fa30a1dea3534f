// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/test/must"
)

const scope = "https://charts.example.org"

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func archive(name string, size int) []byte {
	return bytes.Repeat([]byte(name), size/len(name)+1)[:size]
}

// world is a directory, and a time that stands still.
type world struct {
	dir   string
	clock *clocktesting.FakeClock
	lines []string // of the log
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{dir: filepath.Join(t.TempDir(), "cache"), clock: clocktesting.NewFakeClock(time.Now())}
}

// process is a store as a process has it that starts now.
func (w *world) process(bytes int64) *store.Store {
	log := funcr.New(func(_, line string) { w.lines = append(w.lines, line) }, funcr.Options{})
	return store.New(store.Options{Directory: w.dir, Bytes: bytes, Clock: w.clock, Log: log})
}

// files are all that is in the directory.
func (w *world) files(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "*", "*"))
	must.Succeed(t, err)
	return found
}

// only returns the one file that is in the directory.
func (w *world) only(t testing.TB) string {
	t.Helper()
	found := w.files(t)
	if len(found) != 1 {
		t.Fatalf("there is %q, want one file", found)
	}
	return found[0]
}

func put(s *store.Store, archives ...[]byte) {
	for _, one := range archives {
		s.Put(scope, digestOf(one), one)
	}
}

func expect(t testing.TB, s *store.Store, archive []byte, want bool) {
	t.Helper()
	got, found := s.Get(scope, digestOf(archive))
	if found != want {
		t.Errorf("found %v, want %v", found, want)
	}
	if found && !bytes.Equal(got, archive) {
		t.Error("it is another archive")
	}
}

func TestWhatIsPutIsThere(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a, b := archive("a", 1000), archive("b", 1000)
	expect(t, s, a, false)
	put(s, a, b, a)
	expect(t, s, a, true)
	expect(t, s, b, true)
	expect(t, w.process(0), a, true) // after a restart
	for _, file := range w.files(t) {
		for path, want := range map[string]os.FileMode{filepath.Dir(file): 0o700, file: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want mode %o", path, info, err, want)
			}
		}
	}
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}

func TestNamesLeadNowhereElse(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	outside := filepath.Join(filepath.Dir(w.dir), "outside")
	must.Succeed(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for _, digest := range []string{"", "sha256:", "sha256:../../outside", "../../outside", "sha512:" + strings.Repeat("a", 64), digestOf(nil) + "\n"} {
		for _, scope := range []string{scope, "../../outside", "/"} {
			s.Put(scope, digest, []byte("x"))
			if _, found := s.Get(scope, digest); found {
				t.Errorf("%q of %q was found", digest, scope)
			}
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("outside of the cache is %q (%v)", got, err)
	}
	if around, err := os.ReadDir(filepath.Dir(w.dir)); err != nil || len(around) != 2 {
		t.Errorf("there is %v beside the cache (%v)", around, err)
	}
}

func TestDamagedArchivesAreReplaced(t *testing.T) {
	whole := archive("whole", 5000)
	for name, damage := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 2500) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"longer":    func(path string) error { return os.Truncate(path, 6000) },
		"another":   func(path string) error { return os.WriteFile(path, archive("other", 5000), 0o600) },
		"one bit":   func(path string) error { b := slices.Clone(whole); b[7] ^= 1; return os.WriteFile(path, b, 0o600) },
		"gone":      os.Remove,
		"a directory": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(path, "x"), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.process(0)
			put(s, whole)
			must.Succeed(t, damage(w.only(t)))
			expect(t, s, whole, false)
			put(s, whole)
			expect(t, s, whole, true)
			w.only(t)
		})
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	w := newWorld(t)
	s := w.process(3000)
	a, b, c, d := archive("a", 1000), archive("b", 1000), archive("c", 1000), archive("d", 1000)
	for _, one := range [][]byte{a, b, c} {
		put(s, one)
		w.clock.Step(2 * time.Minute)
	}
	expect(t, s, a, true) // b is the least recently used now
	w.clock.Step(2 * time.Minute)
	other := w.process(3000) // another process knows what was used here
	put(other, d)
	for one, want := range map[*[]byte]bool{&a: true, &b: false, &c: true, &d: true} {
		expect(t, other, *one, want)
	}
	w.clock.Step(2 * time.Minute)
	expect(t, other, c, true)
	lower := w.process(1000) // as with a lower limit
	must.Equal(t, 1, len(w.files(t)), "files are left")
	expect(t, lower, c, true)
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}

func TestWhatIsLargerThanTheCacheIsNotKept(t *testing.T) {
	w := newWorld(t)
	s := w.process(1000)
	small, large := archive("s", 900), archive("l", 1001)
	put(s, small, large)
	expect(t, s, large, false)
	expect(t, s, small, true)
}

func TestCrashLeavesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	kept := archive("kept", 100)
	put(s, kept)
	// As a process leaves it that is killed between write and rename.
	torn := w.only(t) + ".new-abcdefgh"
	must.Succeed(t, os.WriteFile(torn, []byte("to"), 0o600))
	must.Succeed(t, os.Chtimes(torn, w.clock.Now(), w.clock.Now()))
	w.process(0)
	must.Len(t, 2, w.files(t), "what another process may be writing has to stay")
	w.clock.Step(time.Hour)
	w.process(0)
	if w.only(t) == torn {
		t.Error("the torn one is left")
	}
	expect(t, s, kept, true)
}

func TestEmptiedWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a := archive("a", 1000)
	put(s, a)
	must.Succeed(t, os.RemoveAll(w.dir))
	expect(t, s, a, false)
	put(s, a)
	expect(t, s, a, true)
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}

// A directory that can't be used is told once, and once more when it can be again.
func TestUnusableDirectory(t *testing.T) {
	w := newWorld(t)
	must.Succeed(t, os.WriteFile(w.dir, []byte("no directory"), 0o600))
	s := w.process(0)
	a := archive("a", 1000)
	for range 3 {
		put(s, a)
		expect(t, s, a, false)
	}
	must.Len(t, 1, w.lines, "the log says")
	must.Succeed(t, os.Remove(w.dir))
	put(s, a, a)
	expect(t, s, a, true)
	must.Len(t, 2, w.lines, "the log says")
}

// Several processes use one directory, which is too small for them.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	archives := make([][]byte, 12)
	for i := range archives {
		archives[i] = archive(fmt.Sprintf("%02d", i), 10_000+i)
	}
	var done sync.WaitGroup
	for range 4 {
		s := store.New(store.Options{Directory: w.dir, Bytes: 60_000, Log: logr.Discard()})
		for offset := range 3 {
			done.Go(func() {
				for i := range 60 {
					one := archives[(i*7+offset)%len(archives)]
					if got, found := s.Get(scope, digestOf(one)); found && !bytes.Equal(got, one) {
						t.Error("it is another archive")
					} else if !found {
						s.Put(scope, digestOf(one), one)
					}
				}
			})
		}
	}
	done.Wait()
	for _, name := range w.files(t) {
		if strings.Contains(name, ".new-") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestFewLooksAtTheDirectory leaves a file that a crash left behind until a minute is over: a look takes as long as there are files.
func TestFewLooksAtTheDirectory(t *testing.T) {
	w := newWorld(t)
	s := w.process(1 << 20)
	put(s, archive("a", 10))
	torn := w.only(t) + ".new-abcdefgh"
	must.Succeed(t, os.WriteFile(torn, nil, 0o600))
	must.Succeed(t, os.Chtimes(torn, w.clock.Now().Add(-time.Hour), w.clock.Now().Add(-time.Hour)))
	put(s, archive("b", 10))
	must.Equal(t, 3, len(w.files(t)), "files")
	w.clock.Step(2 * time.Minute)
	put(s, archive("c", 10))
	must.Equal(t, 3, len(w.files(t)), "files, without the one that was left behind")
}
