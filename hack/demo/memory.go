// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usage is how much memory a process has, and had at most, in KiB.
type usage struct{ resident, peak int }

// memory reads the usage of a process and of its children, which render charts, from /proc, where the system has one.
func memory(pid int) (own, children usage, count int, ok bool) {
	status, ok := procStatus(strconv.Itoa(pid))
	if !ok {
		return own, children, 0, false
	}
	own = usageOf(status)
	files, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, file := range files {
		// A process that has ended in the meantime isn't counted.
		status, ok := procStatus(filepath.Base(file))
		if ok && status["PPid"] == strconv.Itoa(pid) {
			child := usageOf(status)
			children.resident += child.resident
			children.peak += child.peak
			count++
		}
	}
	return own, children, count, true
}

func procStatus(pid string) (map[string]string, bool) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return nil, false
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(line, ":"); found {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields, true
}

func usageOf(status map[string]string) usage {
	return usage{resident: kib(status["VmRSS"]), peak: kib(status["VmHWM"])}
}

// kib reads a field such as "1234 kB". A process that is ending has none.
func kib(field string) int {
	number, _ := strconv.Atoi(strings.TrimSuffix(field, " kB"))
	return number
}

func (u usage) String() string {
	return fmt.Sprintf("%d MiB resident (%d at most)", u.resident>>10, u.peak>>10)
}
