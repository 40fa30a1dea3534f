// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// measured are the runs of a fleet.
type measured struct {
	Size size     `json:"size"`
	Runs []result `json:"runs"`
}

// result is that of one run.
type result struct {
	Install phase `json:"install"`
	Floor   phase `json:"floor,omitzero"` // of one instance only
	// SameWrites is the floor with the writes of records, namespaces and hooks.
	SameWrites phase `json:"sameWrites,omitzero"`
	Upgrade    phase `json:"upgrade"`
	Drift      phase `json:"drift"`
	Restart    phase `json:"restart"`
	Rest       phase `json:"rest"`
	// HelmProvider is the installation by the other provider, if it was measured.
	HelmProvider phase `json:"helmProvider,omitzero"`
	// Figures of the managers, without their renderers. The last three are those at rest after a restart.
	PeakMiB         float64 `json:"peakMiB"`
	AfterInstallMiB float64 `json:"afterInstallMiB"`
	RestMiB         float64 `json:"restMiB"`
	HeapMiB         float64 `json:"heapMiB"`
	Goroutines      float64 `json:"goroutines"`
}

// row of the table: what is measured, and its floor if there is one.
type row struct {
	name  string
	value func(r *result) float64
	floor func(r *result) float64
}

var rows = []row{
	{"install, seconds", func(r *result) float64 { return r.Install.Seconds }, func(r *result) float64 { return r.Floor.Seconds }},
	{"install, CPU seconds of everything", func(r *result) float64 { return r.Install.AllCPU }, func(r *result) float64 { return r.Floor.AllCPU }},
	{"install, CPU seconds of manager and renderers", func(r *result) float64 { return r.Install.CPU }, func(r *result) float64 { return r.Floor.CPU }},
	{"install, seconds, beside the same writes", func(r *result) float64 { return r.Install.Seconds }, func(r *result) float64 { return r.SameWrites.Seconds }},
	{"install, CPU seconds of everything, beside the same writes", func(r *result) float64 { return r.Install.AllCPU }, func(r *result) float64 { return r.SameWrites.AllCPU }},
	{"install, writes for each cluster, beside the same writes", func(r *result) float64 { return r.Install.Writes }, func(r *result) float64 { return r.SameWrites.Writes }},
	{"install, requests for each cluster", func(r *result) float64 { return r.Install.Requests }, func(r *result) float64 { return r.Floor.Requests }},
	{"install, writes for each cluster", func(r *result) float64 { return r.Install.Writes }, func(r *result) float64 { return r.Floor.Writes }},
	{"install, of these of records", func(r *result) float64 { return r.Install.RecordWrites }, nil},
	{"install, KiB to and from each cluster", func(r *result) float64 { return r.Install.KiB }, func(r *result) float64 { return r.Floor.KiB }},
	{"install, requests to the management cluster for each cluster", func(r *result) float64 { return r.Install.HubRequests }, nil},
	{"upgrade of one value, seconds", func(r *result) float64 { return r.Upgrade.Seconds }, nil},
	{"upgrade, requests for each cluster", func(r *result) float64 { return r.Upgrade.Requests }, nil},
	{"upgrade, writes for each cluster", func(r *result) float64 { return r.Upgrade.Writes }, nil},
	{"upgrade, of these of records", func(r *result) float64 { return r.Upgrade.RecordWrites }, nil},
	{"change of an object in each cluster at once, seconds until all are set right", func(r *result) float64 { return r.Drift.Seconds }, nil},
	{"change of an object, requests for each cluster", func(r *result) float64 { return r.Drift.Requests }, nil},
	{"change of an object, writes for each cluster", func(r *result) float64 { return r.Drift.Writes }, nil},
	{"managers' memory at its peak, MiB", func(r *result) float64 { return r.PeakMiB }, nil},
	{"managers' memory a minute after all of this, MiB", func(r *result) float64 { return r.AfterInstallMiB }, nil},
	{"restart, seconds until nothing is asked any more", func(r *result) float64 { return r.Restart.Seconds }, nil},
	{"restart, requests for each cluster", func(r *result) float64 { return r.Restart.Requests }, nil},
	{"restart, writes for each cluster", func(r *result) float64 { return r.Restart.Writes }, nil},
	{"a minute at rest, requests for each cluster", func(r *result) float64 { return r.Rest.Requests }, nil},
	{"a minute at rest, writes for each cluster", func(r *result) float64 { return r.Rest.Writes }, nil},
	{"a minute at rest, CPU seconds", func(r *result) float64 { return r.Rest.CPU }, nil},
	{"managers' memory at rest after a restart, MiB", func(r *result) float64 { return r.RestMiB }, nil},
	{"managers' heap at rest, MiB", func(r *result) float64 { return r.HeapMiB }, nil},
	{"managers' goroutines at rest", func(r *result) float64 { return r.Goroutines }, nil},
}

// helmProviderRows follow if that provider was measured.
var helmProviderRows = []row{
	{"install by the Helm provider, seconds", func(r *result) float64 { return r.HelmProvider.Seconds }, nil},
	{"install by the Helm provider, its CPU seconds", func(r *result) float64 { return r.HelmProvider.CPU }, nil},
	{"install by the Helm provider, requests for each cluster", func(r *result) float64 { return r.HelmProvider.Requests }, nil},
	{"install by the Helm provider, writes for each cluster", func(r *result) float64 { return r.HelmProvider.Writes }, nil},
}

// markdown returns the table of some runs.
func (m *measured) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d clusters on %d API servers, %d instances, %d add-ons, %d runs, memory limit %s, round trip %s\n\n| | min | median | max | floor (median) | ratio |\n|---|---|---|---|---|---|\n",
		m.Size.Clusters, m.Size.Servers, m.Size.Instances, m.Size.Addons, len(m.Runs), cmp.Or(m.Size.MemoryLimit, "none"), m.Size.RTT)
	all := rows
	if m.Runs[0].HelmProvider.Seconds > 0 {
		all = slices.Concat(rows, helmProviderRows)
	}
	for _, row := range all {
		values := sorted(m.Runs, row.value)
		middle := values[len(values)/2]
		fmt.Fprintf(&out, "| %s | %.4g | %.4g | %.4g |", row.name, values[0], middle, values[len(values)-1])
		var floor float64
		if row.floor != nil {
			floors := sorted(m.Runs, row.floor)
			floor = floors[len(floors)/2]
		}
		if floor == 0 {
			out.WriteString(" | |\n")
			continue
		}
		fmt.Fprintf(&out, " %.4g | %.2f |\n", floor, middle/floor)
	}
	return out.String()
}

func sorted[R any](results []R, value func(*R) float64) []float64 {
	var all []float64
	for i := range results {
		all = append(all, value(&results[i]))
	}
	slices.Sort(all)
	return all
}

// listed returns counts for each cluster, the largest first.
func listed(counts map[string]int, clusters int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s %.1f", name, float64(counts[name])/float64(clusters)))
	}
	return strings.Join(all, ", ")
}

// write writes a JSON file with all figures, and a Markdown file with tables, into a folder.
func write(dir, name string, all any, tables []string) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), []byte(strings.Join(tables, "\n")), 0o644)
}
