// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
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
	"run a program":      func() error { return unix.Exec("/proc/self/exe", []string{"x"}, nil) },
	"signal the manager": func() error { return unix.Kill(os.Getppid(), 0) },
	"signal its thread":  func() error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) },
	// The kernel ignores the upper half of such arguments. It has numbers of other system calls here.
	"signal its thread, with fcntl above": func() error {
		return raw(unix.SYS_TGKILL, above(unix.SYS_FCNTL, os.Getppid()), uintptr(os.Getppid()), 0)
	},
	"signal its thread, with clone above": func() error {
		return raw(unix.SYS_TGKILL, above(unix.SYS_CLONE, os.Getppid()), uintptr(os.Getppid()), 0)
	},
	"read the manager's limits":            func() error { return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) },
	"have the manager signalled":           func() error { return raw(unix.SYS_FCNTL, 0, unix.F_SETOWN, uintptr(os.Getppid())) },
	"have the manager signalled, by more":  func() error { return raw(unix.SYS_FCNTL, 0, above(1, unix.F_SETOWN), uintptr(os.Getppid())) },
	"have the manager signalled otherwise": func() error { return raw(unix.SYS_FCNTL, 0, unix.F_SETOWN_EX, 0) },
	"have it signalled by ioctl":           func() error { return raw(unix.SYS_IOCTL, 0, 0x8901, 0) },
	"fork":                                 func() error { return fork(0) },
	"fork into a namespace":                func() error { return fork(unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID) },
	"share memory with a process":          func() error { return fork(unix.CLONE_FILES | unix.CLONE_FS) },
	"live on without the manager":          func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) },
	"trace the manager":                    func() error { return unix.PtraceAttach(os.Getppid()) },
	"make a file":                          func() error { return unix.Mknod("/tmp/chandler-escaped", unix.S_IFREG|0o600, 0) },
	"remove a file":                        func() error { return unix.Unlink("/tmp/chandler-escaped") },
	"change its directory":                 func() error { return unix.Chdir("/tmp") },
	"get a namespace":                      func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"make memory a file": func() error {
		_, err := unix.MemfdCreate("x", 0)
		return err
	},
}

// above returns a number with another one in its upper half.
func above(upper uintptr, lower int) uintptr { return upper<<32 | uintptr(lower) }

func raw(call uintptr, args ...uintptr) error {
	if _, _, errno := unix.RawSyscall(call, args[0], args[1], args[2]); errno != 0 {
		return errno
	}
	return nil
}

// fork makes a process that ends at once.
func fork(flags uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func runEscapesIfAsked() {
	if _, asked := os.LookupEnv(escapeEnv); !asked {
		return
	}
	if err := sandbox.Enter(256 << 20); err != nil {
		fmt.Println("can't enter the sandbox:", err)
		os.Exit(1)
	}
	for name, try := range escapes {
		if err := try(); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EMFILE) {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	// Programs that can do with clone have to be told that there is no other way.
	if err := raw(unix.SYS_CLONE3, 0, 0, 0); !errors.Is(err, syscall.ENOSYS) {
		fmt.Printf("start a thread by clone3: %v\n", err)
	}
	os.Exit(0)
}

func TestWorkersMayDoNothingElse(t *testing.T) {
	if sandbox.RaceDetector {
		t.Skip("the race detector needs more system calls")
	}
	exe, err := os.Executable()
	must.Succeed(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{escapeEnv + "=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("a worker may:\n%s%v", out, err)
	}
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PIDs()[0]))
	must.Succeed(t, err)
	for _, line := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("a worker that rendered has no %q", line)
		}
	}
}

func TestManagerRunsBeforeWorkers(t *testing.T) {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	must.Succeed(t, err)
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", r.PIDs()[0]))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		must.Succeed(t, err)
		// A thread that has ended since has no priority to compare.
		if priority, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && priority >= own {
			t.Errorf("thread %d has priority %d, as the manager's is %d", id, priority, own)
		}
	}
}

func TestProtectMemory(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	must.Succeed(t, err)
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) }()
	must.Succeed(t, sandbox.ProtectMemory())
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("dumpable is %d, %v", now, err)
	}
}

// The kernel shows a process whose memory is protected as root's.
func TestWorkersMemoryIsProtected(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("all processes are root's")
	}
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", r.PIDs()[0]))
	must.Succeed(t, err)
	must.Equal(t, 0, info.Sys().(*syscall.Stat_t).Uid, "its owner")
}
