// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"runtime"
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD, which package syscall has no name for.
const rusageThread = 1

// work runs f, and returns how much processor time that took: however busy the
// machine is, it is the same. f has to do its work without goroutines.
func work(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
