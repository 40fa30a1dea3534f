// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startedAfter is when what only the start needed is given back.
const startedAfter = 15 * time.Second

// shrink gives back memory that only the start needed: free heap, and pages of the
// program's code. The kernel maps these again, from its cache, when they run.
func shrink() {
	time.Sleep(startedAfter)
	debug.FreeOSMemory()
	exe, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // 00401000-02400000 r-xp 00001000 fe:00 123 /manager
		if len(fields) != 6 || fields[1] != "r-xp" || fields[5] != exe {
			continue
		}
		first, last, _ := strings.Cut(fields[0], "-")
		from, errFrom := strconv.ParseUint(first, 16, 64)
		to, errTo := strconv.ParseUint(last, 16, 64)
		if errFrom == nil && errTo == nil {
			// Code is never written, so nothing is lost. A failure costs memory alone.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}
