// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Running is a process of this machine, which needs not be one that was started here.
type Running struct {
	Name        string
	PID, Parent int
	// CPU is the processor time that it has used, and ChildrenCPU that of its children that have ended.
	CPU, ChildrenCPU time.Duration
}

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// List returns all processes. It needs Linux.
func List() ([]Running, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var all []Running
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		p, err := parseStat(string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// CPU returns the processor time that a process has used, without its children. It needs Linux.
func CPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	p, err := parseStat(string(data))
	return p.CPU, err
}

// parseStat reads what proc_pid_stat(5) describes.
func parseStat(text string) (Running, error) {
	id, rest, _ := strings.Cut(text, " (")
	end := strings.LastIndexByte(rest, ')') // names may have any characters
	if end < 0 {
		return Running{}, fmt.Errorf("no name in %q", text)
	}
	fields := strings.Fields(rest[end+1:])
	if len(fields) < 15 {
		return Running{}, fmt.Errorf("%d fields in %q", len(fields), text)
	}
	numbers := make([]int64, 0, 6)
	for _, field := range []string{id, fields[1], fields[11], fields[12], fields[13], fields[14]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Running{}, err
		}
		numbers = append(numbers, n)
	}
	return Running{
		Name: rest[:end], PID: int(numbers[0]), Parent: int(numbers[1]),
		CPU: time.Duration(numbers[2]+numbers[3]) * tick, ChildrenCPU: time.Duration(numbers[4]+numbers[5]) * tick,
	}, nil
}

// Figures of Memory.
const (
	Resident     = "VmRSS"
	PeakResident = "VmHWM"
	// ResidentFiles are the pages of files, which the kernel has once, and can drop.
	ResidentFiles = "RssFile"
)

// Memory returns a figure of a process's memory, without its children, in MiB. It needs Linux.
func Memory(pid int, figure string) (float64, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, figure)
}
