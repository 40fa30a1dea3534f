// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"slices"
	"time"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
)

// cpu returns the processor time of the managers, that with their renderers, and that with all API servers and their storage.
func (f *fleet) cpu() (alone, own, all time.Duration) {
	f.Helper()
	running, err := process.List()
	must.Succeed(f, err)
	managers := f.pids()
	for _, p := range running {
		switch {
		case slices.Contains(managers, p.PID):
			alone += p.CPU
			own += p.CPU + p.ChildrenCPU // of renderers that have ended, too
		case slices.Contains(managers, p.Parent):
			own += p.CPU
		case (p.Name == "kube-apiserver" || p.Name == "etcd") && p.Parent == os.Getpid(): // others may run beside
			all += p.CPU
		}
	}
	return alone, own, all + own
}

// pids are those of the processes that are measured.
func (f *fleet) pids() []int {
	var all []int
	for _, m := range f.managers {
		all = append(all, m.PID())
	}
	if f.other != nil {
		all = append(all, f.other.PID())
	}
	return all
}

// memory returns a figure of all managers', without their renderers, in MiB.
func (f *fleet) memory(figure string) (sum float64) {
	f.Helper()
	for _, pid := range f.pids() {
		mib, err := process.Memory(pid, figure)
		must.Succeed(f, err)
		sum += mib
	}
	return sum
}

// metric returns the sum of a metric's samples with these labels over all managers that run.
func (f *fleet) metric(name string, labels ...string) (sum float64) {
	f.Helper()
	for _, m := range f.managers {
		if m.Ended() != nil {
			continue // its successor counts again
		}
		value, err := m.Sum(name, labels...)
		must.Succeed(f, err)
		sum += value
	}
	return sum
}
