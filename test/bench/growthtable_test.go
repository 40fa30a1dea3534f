// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
)

// growthRows are the rows of the table, with what is aimed at.
var growthRows = []struct {
	name  string
	value func(s size, r *grown) float64
	aim   string
}{
	{"install, seconds", func(_ size, r *grown) float64 { return r.Install.Seconds }, "2 of 1 × 50"},
	{"install, CPU seconds of everything for each cluster", func(s size, r *grown) float64 { return r.Install.AllCPU / float64(s.Clusters) }, ""},
	{"install, CPU seconds of the manager for each cluster", func(s size, r *grown) float64 { return r.Install.ManagerCPU / float64(s.Clusters) }, ""},
	{"install, requests for each cluster", func(_ size, r *grown) float64 { return r.Install.Requests }, ""},
	{"install, requests for each add-on of a cluster", func(s size, r *grown) float64 { return r.Install.Requests / float64(s.Stacks*s.Addons) }, "3 of 1 × 50"},
	{"install, writes for each cluster", func(_ size, r *grown) float64 { return r.Install.Writes }, ""},
	{"install, requests to the management cluster for each cluster", func(_ size, r *grown) float64 { return r.Install.HubRequests }, ""},
	{"edit of one add-on, seconds until the first write", func(_ size, r *grown) float64 { return r.Edit.FirstWrite }, "0.5"},
	{"edit of one add-on, seconds until all are ready", func(_ size, r *grown) float64 { return r.Edit.Seconds }, ""},
	{"edit of one add-on, writes for each cluster", func(_ size, r *grown) float64 { return r.Edit.Writes }, ""},
	{"edit of one add-on, requests to the management cluster for each cluster", func(_ size, r *grown) float64 { return r.Edit.HubRequests }, "6"},
	{"edit of one add-on, writes of its stack's status", func(_ size, r *grown) float64 { return float64(r.Edit.StatusWrites[stackName(0)]) }, ""},
	{"edit of one add-on, writes of other stacks' statuses", func(_ size, r *grown) float64 { return float64(r.Edit.otherStatuses(stackName(0))) }, "0"},
	{"change of the ConfigMap of all add-ons, seconds until the first write", func(_ size, r *grown) float64 { return r.Shared.FirstWrite }, ""},
	{"change of the ConfigMap of all add-ons, seconds until all are ready", func(_ size, r *grown) float64 { return r.Shared.Seconds }, ""},
	{"change of the ConfigMap of all add-ons, CPU seconds of everything for each cluster", func(s size, r *grown) float64 { return r.Shared.AllCPU / float64(s.Clusters) }, ""},
	{"change of the ConfigMap of all add-ons, writes for each cluster", func(_ size, r *grown) float64 { return r.Shared.Writes }, ""},
}

// otherStatuses returns how often statuses of stacks but one were written.
func (p *phase) otherStatuses(stack string) (sum int) {
	for name, n := range p.StatusWrites {
		if name != stack {
			sum += n
		}
	}
	return sum
}

// name returns the head of the column.
func (m *growth) name() string {
	if m.Size.IdleStacks > 0 {
		return fmt.Sprintf("%d × %d, %d idle", m.Size.Stacks, m.Size.Addons, m.Size.IdleStacks)
	}
	return fmt.Sprintf("%d × %d", m.Size.Stacks, m.Size.Addons)
}

// median returns the middle one of all runs.
func (m *growth) median(value func(*grown) float64) float64 {
	values := sorted(m.Runs, value)
	return values[len(values)/2]
}

// growthTable returns medians, and how much stacks cost a fleet that they don't select.
func growthTable(all []*growth) string {
	var out strings.Builder
	s := all[0].Size
	fmt.Fprintf(&out, "%d clusters on %d API servers, %d runs, stacks × add-ons of one ConfigMap each\n\n|", s.Clusters, s.Servers, len(all[0].Runs))
	for _, m := range all {
		fmt.Fprintf(&out, " | %s", m.name())
	}
	fmt.Fprintf(&out, " | aim |\n|%s\n", strings.Repeat("---|", len(all)+2))
	for _, row := range growthRows {
		fmt.Fprintf(&out, "| %s |", row.name)
		for _, m := range all {
			fmt.Fprintf(&out, " %.4g |", m.median(func(r *grown) float64 { return row.value(m.Size, r) }))
		}
		fmt.Fprintf(&out, " %s |\n", row.aim)
	}
	var none *growth // of the same stacks, without idle ones
	for _, m := range all {
		if m.Size.IdleStacks == 0 {
			none = m
			continue
		}
		fmt.Fprintf(&out, "\n%s: %.3f times the CPU of everything without idle stacks, of the manager %.3f times; the aim is 1.05\n", m.name(),
			m.median(func(r *grown) float64 { return r.Install.AllCPU })/none.median(func(r *grown) float64 { return r.Install.AllCPU }),
			m.median(func(r *grown) float64 { return r.Install.ManagerCPU })/none.median(func(r *grown) float64 { return r.Install.ManagerCPU }))
	}
	return out.String()
}
