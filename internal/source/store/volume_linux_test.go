// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// withVolume does something in a process that may mount volumes, for itself alone.
// The world's directory is such a volume.
func withVolume(t *testing.T, options string, do func(t *testing.T, w *world)) {
	t.Helper()
	const inside = "CHANDLER_TEST_VOLUMES"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		switch {
		case err != nil && !errors.As(err, &failed) || strings.Contains(string(out), "no volume:"):
			t.Skipf("this host doesn't let its users mount volumes: %v\n%s", err, out)
		case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	w := newWorld(t)
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", w.dir, "tmpfs", 0, options); err != nil {
		t.Fatal("no volume:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(w.dir, syscall.MNT_DETACH) })
	do(t, w)
}

// A volume may be smaller than --cache-size-mib, or have room for few files: what
// wasn't used for longest goes then, too.
func TestSmallVolume(t *testing.T) {
	withVolume(t, "size=8m", func(t *testing.T, w *world) {
		keepsTheLast(t, w, 1<<20-100, 5)
	})
}

func TestVolumeWithFewInodes(t *testing.T) {
	withVolume(t, "size=64m,nr_inodes=12", func(t *testing.T, w *world) {
		keepsTheLast(t, w, 100, 3)
	})
}

func keepsTheLast(t *testing.T, w *world, size, last int) {
	s := w.process(1 << 30)
	var archives [][]byte
	for i := range 30 {
		w.clock.Step(time.Hour)
		one := archive(fmt.Sprintf("%02d", i), size+i)
		archives = append(archives, one)
		put(s, one)
		s.Grant(digestOf(one), "x")
		if _, found := s.Get(digestOf(one)); !found || !s.Granted(digestOf(one), "x") {
			t.Errorf("%d is kept: %t, with its grant: %t", i, found, s.Granted(digestOf(one), "x"))
		}
	}
	for i := range last {
		expect(t, s, archives[len(archives)-1-i], true)
	}
	if len(w.lines) > 0 || testutil.ToFloat64(usable) != 1 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}
	// What is in use stays on a full volume, too; that is told once.
	w = &world{dir: w.dir, clock: w.clock}
	s = w.process(1 << 30)
	for _, one := range archives[len(archives)-last:] {
		expect(t, s, one, true)
	}
	for i := range 30 {
		put(s, archive(fmt.Sprintf("in-use-%02d", i), size))
	}
	for _, one := range archives[len(archives)-last:] {
		expect(t, s, one, true)
	}
	if len(w.lines) != 1 || !strings.Contains(w.lines[0], "no space left") || testutil.ToFloat64(usable) != 0 {
		t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
	}
}

// A kernel makes a volume read-only when its disk fails, and an admin when he looks after it.
func TestVolumeThatBecomesReadOnly(t *testing.T) {
	withVolume(t, "size=8m", func(t *testing.T, w *world) {
		s := w.process(1 << 30)
		a, b := archive("a", 1000), archive("b", 1000)
		put(s, a)
		s.Grant(digestOf(a), "x")
		w.clock.Step(time.Hour)
		remount(t, w, syscall.MS_RDONLY)
		for range 3 {
			put(s, b)
			expect(t, s, b, false)
			expect(t, s, a, true)
			s.Grant(digestOf(a), "y")
			if !s.Granted(digestOf(a), "x") {
				t.Error("what can be read isn't")
			}
			w.clock.Step(time.Hour)
		}
		if len(w.lines) != 1 || !strings.Contains(w.lines[0], "read-only") || testutil.ToFloat64(usable) != 0 {
			t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
		}
		remount(t, w, 0)
		put(s, b)
		expect(t, s, b, true)
		if len(w.lines) != 2 || testutil.ToFloat64(usable) != 1 {
			t.Errorf("usable is %v, the log says %q", testutil.ToFloat64(usable), w.lines)
		}
		if files := ls(t, filepath.Join(w.dir, layout)); len(files) != 3 {
			t.Errorf("there is %q", files)
		}
	})
}

func remount(t *testing.T, w *world, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("", w.dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}
