// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// syscalls are what Go's runtime needs for memory, threads, signals and time, and what it
// takes to read and write the descriptors that are open. All others fail with EPERM: those
// that run programs, signal or read other processes, or open anything.
var syscalls = []string{
	"read", "write", "close", "fcntl", "fstat", "lseek",
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe2", "poll", "ppoll",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier",
	"clone", "futex", "set_robust_list", "set_tid_address", "rseq", "arch_prctl",
	"sched_yield", "sched_getaffinity", "exit", "exit_group", "restart_syscall",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "tgkill", "getpid", "gettid", "getppid",
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
	"timer_create", "timer_settime", "timer_delete", "setitimer",
	"getrandom", "getrlimit", "setrlimit", "prlimit64", "getrusage", "uname", "getuid", "geteuid", "getgid", "getegid",
}

// namespaces are the flags of clone that make new ones.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// refused are the arguments with which system calls fail that are allowed otherwise: of tgkill all
// processes but the own, and so on. The kernel ignores the upper half of some, so they name what is allowed.
func refused() []seccomp.NameWithConditions {
	is := func(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: conditions}
	}
	command := func(allowed uint64) seccomp.Condition {
		return seccomp.Condition{Argument: 1, Operation: seccomp.NotEqual, Value: allowed}
	}
	return []seccomp.NameWithConditions{
		is("tgkill", seccomp.Condition{Operation: seccomp.NotEqual, Value: uint64(os.Getpid())}),
		is("prlimit64", seccomp.Condition{Operation: seccomp.NotEqual, Value: 0}),
		is("clone", seccomp.Condition{Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}),
		is("clone", seccomp.Condition{Operation: seccomp.BitsSet, Value: namespaces}),
		is("fcntl", command(unix.F_GETFD), command(unix.F_SETFD), command(unix.F_GETFL), command(unix.F_SETFL), command(unix.F_DUPFD_CLOEXEC)),
	}
}

// WhyUnfiltered returns why render workers may make all system calls; nil if there is a filter. Then
// a worker without it ends at once.
func WhyUnfiltered() error {
	if RaceDetector {
		return errors.New("the race detector needs more of them")
	}
	if !seccomp.Supported() {
		return errors.New("the kernel has no seccomp, or doesn't let this process use it")
	}
	if _, err := arch.GetInfo(""); err != nil {
		return errors.New("no filter is known for this architecture")
	}
	return nil
}

// limitSyscalls takes all other system calls away, for good. Where there can be no filter, the limits
// of resources hold all the same. Each refusal is a filter of its own, and the kernel obeys the strictest:
// after arguments, the library compares the next name with an argument rather than the call's number.
func limitSyscalls() error {
	if WhyUnfiltered() != nil {
		return nil //nolint:nilerr // the manager has said so, or refused to start
	}
	known, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(slices.Clone(syscalls), func(name string) bool { _, exists := known.SyscallNames[name]; return !exists })
	var policies []seccomp.Policy
	for _, call := range refused() {
		policies = append(policies, seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{NamesWithCondtions: []seccomp.NameWithConditions{call}, Action: seccomp.ActionErrno}},
		})
	}
	policies = append(policies, seccomp.Policy{ // the last: it allows no further one
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Names: names, Action: seccomp.ActionAllow},
			{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}, // so that clone is tried
		},
	})
	for _, policy := range policies {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: policy}); err != nil {
			return fmt.Errorf("limiting system calls: %w", err)
		}
	}
	return nil
}
