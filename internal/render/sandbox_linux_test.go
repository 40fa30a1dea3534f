// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// escapeEnv has this test's program enter the sandbox, and try to get out.
const escapeEnv = "CHANDLER_TEST_ESCAPE"

// escapes are what no worker may do. Each returns the error of the kernel.
var escapes = map[string]func() error{
	"open a file": func() error {
		_, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0)
		return err
	},
	"open a socket": func() error {
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		return err
	},
	"run a program":        func() error { return unix.Exec("/proc/self/exe", []string{"x"}, nil) },
	"signal the manager":   func() error { return unix.Kill(os.Getppid(), 0) },
	"trace the manager":    func() error { return unix.PtraceAttach(os.Getppid()) },
	"make a file":          func() error { return unix.Mknod("/tmp/chandler-escaped", unix.S_IFREG|0o600, 0) },
	"remove a file":        func() error { return unix.Unlink("/tmp/chandler-escaped") },
	"change its directory": func() error { return unix.Chdir("/tmp") },
	"get a namespace":      func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"make memory a file": func() error {
		_, err := unix.MemfdCreate("x", 0)
		return err
	},
}

func runEscapesIfAsked() {
	if _, asked := os.LookupEnv(escapeEnv); !asked {
		return
	}
	if err := enterSandbox(256 << 20); err != nil {
		fmt.Println("can't enter the sandbox:", err)
		os.Exit(1)
	}
	for name, try := range escapes {
		if err := try(); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EMFILE) {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	os.Exit(0)
}

func TestWorkersMayDoNothingElse(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{escapeEnv + "=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("a worker may:\n%s%v", out, err)
	}
	r := newRenderer(t)
	mustRender(t, r)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pids()[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("a worker that rendered has no %q", line)
		}
	}
}
