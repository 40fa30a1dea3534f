// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"syscall"
	"time"
)

// usageOfThread is RUSAGE_THREAD, which package syscall has no name for.
const usageOfThread = 1

func threadTime() time.Duration  { return used(usageOfThread) }
func processTime() time.Duration { return used(syscall.RUSAGE_SELF) }

func used(by int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(by, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
