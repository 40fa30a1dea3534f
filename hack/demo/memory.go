// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memory says how much a process has, and its children, which render charts. It reads /proc, where the system has one.
func memory(pid int) string {
	own := procStatus(strconv.Itoa(pid))
	if own == nil {
		return "  Memory isn't measured on this system: it has no /proc."
	}
	children, count := 0, 0
	files, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, file := range files {
		// A process that has ended in the meantime isn't counted.
		if status := procStatus(filepath.Base(file)); status["PPid"] == strconv.Itoa(pid) {
			children += mebibytes(status)
			count++
		}
	}
	return fmt.Sprintf("  Memory: manager %d MiB; %d processes that render charts, %d MiB together.", mebibytes(own), count, children)
}

// procStatus is what /proc says of a process, nil if it is gone.
func procStatus(pid string) map[string]string {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return nil
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// mebibytes are those of a process that are resident. One that is ending has none.
func mebibytes(status map[string]string) int {
	kibibytes, _ := strconv.Atoi(strings.TrimSuffix(status["VmRSS"], " kB"))
	return kibibytes >> 10
}
