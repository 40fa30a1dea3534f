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
	process := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat(process); err != nil {
		return "  Memory isn't measured on this system: it has no /proc."
	}
	together, count := 0, 0
	threads, _ := filepath.Glob(filepath.Join(process, "task", "*", "children")) // the pattern is valid
	for _, thread := range threads {
		children, _ := os.ReadFile(thread) // a thread that has ended has none
		for _, child := range strings.Fields(string(children)) {
			together += resident(filepath.Join("/proc", child))
			count++
		}
	}
	return fmt.Sprintf("  Memory: manager %d MiB; %d processes that render charts, %d MiB together.", resident(process), count, together)
}

// resident is a process's memory in MiB; 0 if it has ended.
func resident(process string) int {
	statm, _ := os.ReadFile(filepath.Join(process, "statm"))
	var size, pages int
	_, _ = fmt.Sscan(string(statm), &size, &pages)
	return pages * os.Getpagesize() >> 20
}
