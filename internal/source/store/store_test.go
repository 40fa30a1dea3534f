// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

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
func (w *world) process(size int64) *Store {
	log := funcr.New(func(_, line string) { w.lines = append(w.lines, line) }, funcr.Options{})
	return New(Options{Directory: w.dir, Bytes: size, ArchiveBytes: 1 << 20, Clock: w.clock, Log: log})
}

func (w *world) file(archive []byte) string {
	return filepath.Join(w.dir, layout, strings.TrimPrefix(digestOf(archive), "sha256:"))
}

func expect(t testing.TB, s *Store, archive []byte, want bool) {
	t.Helper()
	got, found := s.Get(digestOf(archive))
	if found != want {
		t.Fatalf("found %v, want %v", found, want)
	}
	if found && !bytes.Equal(got, archive) {
		t.Fatal("it is another archive")
	}
}

func put(s *Store, archives ...[]byte) {
	for _, archive := range archives {
		s.Put(digestOf(archive), archive)
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
	for path, want := range map[string]os.FileMode{filepath.Dir(w.file(a)): 0o700, w.file(a): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}

func TestNamesComeFromDigestsOnly(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	outside := filepath.Join(filepath.Dir(w.dir), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"", "sha256:", "sha256:../../outside", "../../outside", "sha512:" + strings.Repeat("a", 64),
		"sha256:" + strings.Repeat("A", 64), "sha256:" + strings.Repeat("a", 63) + "/", digestOf(nil) + "\n"} {
		s.Put(digest, []byte("x"))
		s.Grant(digest, "x")
		if _, found := s.Get(digest); found || s.Granted(digest, "x") {
			t.Errorf("%q was found", digest)
		}
	}
	if files := ls(t, filepath.Join(w.dir, layout)); len(files) > 0 {
		t.Errorf("there is %q", files)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("outside of the cache is %q (%v)", got, err)
	}
}

func ls(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestDamagedArchivesAreReplaced(t *testing.T) {
	whole := archive("whole", 5000)
	damages := map[string]func(path string) error{
		"truncated":    func(path string) error { return os.Truncate(path, 2500) },
		"empty":        func(path string) error { return os.Truncate(path, 0) },
		"longer":       func(path string) error { return os.Truncate(path, 6000) },
		"huge":         func(path string) error { return os.Truncate(path, 1<<40) },
		"another":      func(path string) error { return os.WriteFile(path, archive("other", 5000), 0o600) },
		"a directory":  func(path string) error { return os.Remove(path) },
		"one bit":      func(path string) error { b := slices.Clone(whole); b[7] ^= 1; return os.WriteFile(path, b, 0o600) },
		"a named pipe": mkfifo,
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.process(0)
			put(s, whole)
			if err := damage(w.file(whole)); err != nil {
				t.Fatal(err)
			}
			if name == "a directory" {
				if err := os.MkdirAll(filepath.Join(w.file(whole), "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			before := testutil.ToFloat64(corruptions)
			expect(t, s, whole, false)
			if got := testutil.ToFloat64(corruptions) - before; got != 1 {
				t.Errorf("%v corruptions were counted", got)
			}
			put(s, whole)
			expect(t, s, whole, true)
		})
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	w := newWorld(t)
	s := w.process(3000)
	a, b, c, d, e := archive("a", 1000), archive("b", 1000), archive("c", 1000), archive("d", 1000), archive("e", 2500)
	for _, one := range [][]byte{a, b, c} {
		put(s, one)
		w.clock.Step(2 * time.Minute)
	}
	w.clock.Step(time.Hour)
	expect(t, s, a, true) // b is the least recently used now
	before := testutil.ToFloat64(evictions)
	put(s, d)
	if got := testutil.ToFloat64(evictions) - before; got != 1 {
		t.Errorf("%v evictions", got)
	}
	expect(t, s, b, false)

	// Another process knows what was used here.
	other := w.process(3000)
	put(other, e) // there is no room but that of c, and of what is in use
	for _, used := range [][]byte{a, d} {
		expect(t, other, used, true)
	}
	expect(t, other, e, false)
	w.process(1000) // as with a lower limit: it can't be kept for now
	expect(t, other, a, true)
	w.clock.Step(2 * Busy)
	put(other, e)
	expect(t, other, e, true)
	for _, gone := range [][]byte{a, c, d} {
		expect(t, other, gone, false)
	}
	if len(w.lines) > 0 {
		t.Errorf("the log says %q", w.lines)
	}
}

func TestWhatIsLargerThanTheCacheIsNotKept(t *testing.T) {
	w := newWorld(t)
	s := w.process(1000)
	small, large := archive("s", 900), archive("l", 1001)
	put(s, small)
	w.clock.Step(2 * Busy)
	put(s, large)
	expect(t, s, large, false)
	expect(t, s, small, true)
}

func TestCrashLeavesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	kept := archive("kept", 100)
	put(s, kept)
	// As a process leaves it that is killed between write and rename.
	torn := filepath.Join(w.dir, layout, temporary+strings.TrimPrefix(digestOf(archive("torn", 100)), "sha256:")+"-abcdefgh")
	if err := os.WriteFile(torn, []byte("to"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(torn, w.clock.Now(), w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	expect(t, s, archive("torn", 100), false)
	w.process(0)
	if files := ls(t, filepath.Dir(torn)); len(files) != 2 {
		t.Errorf("there is %q: what another process may be writing has to stay", files)
	}
	w.clock.Step(unfinishedFor + time.Minute)
	w.process(0)
	if files := ls(t, filepath.Dir(torn)); !slices.Equal(files, []string{filepath.Base(w.file(kept))}) {
		t.Errorf("there is %q", files)
	}
}

func TestGrants(t *testing.T) {
	w := newWorld(t)
	s := w.process(2000)
	a := archive("a", 1000)
	s.Grant(digestOf(a), "early")
	put(s, a)
	if s.Granted(digestOf(a), "early") {
		t.Error("a grant was noted for what wasn't there")
	}
	s.Grant(digestOf(a), "team-a")
	if err := appendTo(w.file(a)+grantsOf, "torn by a cra"); err != nil {
		t.Fatal(err)
	}
	s.Grant(digestOf(a), "team-b")
	restarted := w.process(2000)
	for title, want := range map[string]bool{"team-a": true, "team-b": true, "team-c": false, "": false, "team": false} {
		if got := restarted.Granted(digestOf(a), title); got != want {
			t.Errorf("%q has it: %v, want %v", title, got, want)
		}
	}
	data, err := os.ReadFile(w.file(a) + grantsOf)
	if err != nil || bytes.Contains(data, []byte("team")) {
		t.Errorf("%v: titles are kept as they are: %q", err, data)
	}
	w.clock.Step(2 * Busy)
	put(s, archive("b", 1900))
	if s.Granted(digestOf(a), "team-a") {
		t.Error("the grants of an archive stay when it goes")
	}
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func TestNoStore(t *testing.T) {
	var s *Store
	put(s, archive("a", 10))
	s.Grant(digestOf(archive("a", 10)), "x")
	expect(t, s, archive("a", 10), false)
	if s.Granted(digestOf(archive("a", 10)), "x") {
		t.Error("nothing granted something")
	}
}

func TestEmptiedWhileItIsUsed(t *testing.T) {
	w := newWorld(t)
	s := w.process(0)
	a := archive("a", 1000)
	put(s, a)
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(w.dir, []byte("no directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.process(0)
	a := archive("a", 1000)
	for range 3 {
		put(s, a)
		expect(t, s, a, false)
	}
	if len(w.lines) != 1 || !strings.Contains(w.lines[0], "can't be used") || testutil.ToFloat64(usable) != 0 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}
	if err := os.Remove(w.dir); err != nil {
		t.Fatal(err)
	}
	put(s, a)
	expect(t, s, a, true)
	if len(w.lines) != 2 || !strings.Contains(w.lines[1], "again") || testutil.ToFloat64(usable) != 1 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}
}

// Several processes use one directory, which is too small for them.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	w.clock = nil
	archives := make([][]byte, 12)
	for i := range archives {
		archives[i] = archive(fmt.Sprintf("%02d", i), 10_000+i)
	}
	var done sync.WaitGroup
	for range 4 {
		s := New(Options{Directory: w.dir, Bytes: 60_000, ArchiveBytes: 1 << 20, Log: logr.Discard()})
		for offset := range 3 {
			done.Go(func() {
				for i := range 60 {
					one := archives[(i*7+offset)%len(archives)]
					if got, found := s.Get(digestOf(one)); found && !bytes.Equal(got, one) {
						t.Error("it is another archive")
					} else if !found {
						s.Put(digestOf(one), one)
					}
					s.Grant(digestOf(one), fmt.Sprint(offset))
					if i%10 == 0 { // as if it were old
						name := filepath.Join(w.dir, layout, nameOf(digestOf(one)))
						_ = os.Chtimes(name, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)) // it may be gone
					}
				}
			})
		}
	}
	done.Wait()
	for _, name := range ls(t, filepath.Join(w.dir, layout)) {
		if strings.HasPrefix(name, temporary) {
			t.Errorf("%s is left", name)
		}
	}
}
