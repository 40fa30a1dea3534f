// SPDX-License-Identifier: Apache-2.0

//go:build unix

package store

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func mkfifo(path string) error {
	return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
}

const ownProcess = "STORE_TEST_OWN_PROCESS"

// A full disk is simulated with the limit on the size of files. It holds for all that
// the process writes, also for what go test keeps of a test: hence a process of its own.
func TestFullDisk(t *testing.T) {
	if os.Getenv(ownProcess) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
		c.Env = append(os.Environ(), ownProcess+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	w := newWorld(t)
	s := w.process(0)
	small, large := archive("small", 100), archive("large", 10_000)
	put(s, small)
	limit := syscall.Rlimit{}
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	put(s, large)
	put(s, large)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	expect(t, s, large, false)
	expect(t, s, small, true)
	if len(w.lines) != 1 {
		t.Errorf("the log says %q", w.lines)
	}
	if files := ls(t, w.dir+"/"+layout); len(files) != 1 {
		t.Errorf("there is %q", files)
	}
	put(s, large)
	expect(t, s, large, true)
	if len(w.lines) != 2 {
		t.Errorf("the log says %q", w.lines)
	}
}
