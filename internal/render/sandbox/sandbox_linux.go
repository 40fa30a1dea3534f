// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ChildAttributes ends a worker with its parent, and keeps the terminal's signals from it.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Enter gives up, for good, the right to open files and sockets, to write files, to run
// programs, to signal other processes, and to use more memory than allowed.
func Enter(memoryBytes int64) error {
	// Let the kernel pick this process first when memory runs out. Not allowed everywhere, and no loss then.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := yieldProcessor(); err != nil {
		return err
	}
	used, err := dataBytes()
	if err != nil {
		return err
	}
	limits := map[int]uint64{
		syscall.RLIMIT_CORE:   0,
		syscall.RLIMIT_FSIZE:  0,
		syscall.RLIMIT_NOFILE: 0, // open descriptors stay; no new one can be had
	}
	if !RaceDetector { // its shadow memory is counted, too
		limits[syscall.RLIMIT_DATA] = used + uint64(memoryBytes)
	}
	for resource, limit := range limits {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit resource %d: %w", resource, err)
		}
	}
	if err := ProtectMemory(); err != nil {
		return err
	}
	return limitSyscalls()
}

// workerNiceness is added to that of the manager. Where both want a processor, the manager runs first, so a large chart
// delays no other cluster's answers.
const workerNiceness = 10

// yieldProcessor lowers the priority of each thread. Threads that start later inherit it.
func yieldProcessor() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		// The system call returns 20 minus the niceness, and Linux takes 19 for anything above.
		priority, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, id, 20-priority+workerNiceness)
		}
		if err != nil {
			return fmt.Errorf("lower the priority of thread %d: %w", id, err)
		}
	}
	return nil
}

// ProcessorTime returns how long a process has run on processors, of all its threads; false if that isn't known.
func ProcessorTime(pid int) (time.Duration, bool) {
	const ofProcess = 2 // CPUCLOCK_SCHED: see clock_getcpuclockid(3)
	var used unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|ofProcess), &used)
	return time.Duration(used.Nano()), err == nil
}

// dataBytes is the private writable memory that this process has mapped by now: mostly the
// arena that Go's runtime maps at the start, of which little is in use.
func dataBytes() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmData:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, nil
}

// ProtectMemory keeps other processes of the same user from reading this one's memory, and
// the kernel from writing it to a file. A worker runs as the manager's user.
func ProtectMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping others from reading this process: %w", err)
	}
	return nil
}
