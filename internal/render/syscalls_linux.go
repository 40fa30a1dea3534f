// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// syscalls are what Go's runtime needs for memory, threads, signals and time, and what it
// takes to read and write the descriptors that are open. All others fail with EPERM: those
// that run programs, signal or read other processes, or open anything.
var syscalls = []string{
	"read", "write", "close", "fcntl", "fstat", "lseek", "ioctl",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe2", "poll", "ppoll",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier", "prctl",
	"clone", "clone3", "futex", "set_robust_list", "set_tid_address", "rseq", "arch_prctl",
	"sched_yield", "sched_getaffinity", "exit", "exit_group", "restart_syscall",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "tgkill", "getpid", "gettid", "getppid",
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
	"timer_create", "timer_settime", "timer_delete", "setitimer",
	"getrandom", "getrlimit", "setrlimit", "prlimit64", "getrusage", "uname", "getuid", "geteuid", "getgid", "getegid",
}

// limitSyscalls takes all other system calls away, for good. A kernel without seccomp has
// none of this; the limits of resources hold there, too.
func limitSyscalls() error {
	if raceDetector || !seccomp.Supported() { // the detector needs more
		return nil
	}
	known, err := arch.GetInfo("")
	if err != nil {
		return nil //nolint:nilerr // the library doesn't know this architecture
	}
	names := slices.DeleteFunc(slices.Clone(syscalls), func(name string) bool { _, exists := known.SyscallNames[name]; return !exists })
	err = seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls:      []seccomp.SyscallGroup{{Names: names, Action: seccomp.ActionAllow}},
		},
	})
	if err != nil {
		return fmt.Errorf("limiting system calls: %w", err)
	}
	return nil
}
