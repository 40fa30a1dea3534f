// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// result is that of one run.
type result struct {
	Install phase `json:"install"`
	Floor   phase `json:"floor"`
	Upgrade phase `json:"upgrade"`
	Drift   phase `json:"drift"`
	Restart phase `json:"restart"`
	Rest    phase `json:"rest"`
	// HelmProvider is the installation by the other provider, if it was measured.
	HelmProvider phase   `json:"helmProvider,omitzero"`
	PeakMiB      float64 `json:"peakMiB"` // of the manager
	RestMiB      float64 `json:"restMiB"`
}

// rows of the table: what is measured, and its floor if there is one.
var rows = []struct {
	name  string
	value func(r *result) float64
	floor func(r *result) float64
}{
	{"install, seconds", func(r *result) float64 { return r.Install.Seconds }, func(r *result) float64 { return r.Floor.Seconds }},
	{"install, CPU seconds of everything", func(r *result) float64 { return r.Install.AllCPU }, func(r *result) float64 { return r.Floor.AllCPU }},
	{"install, CPU seconds of manager and renderers", func(r *result) float64 { return r.Install.CPU }, func(r *result) float64 { return r.Floor.CPU }},
	{"install, requests for each cluster", func(r *result) float64 { return r.Install.Requests }, func(r *result) float64 { return r.Floor.Requests }},
	{"install, writes for each cluster", func(r *result) float64 { return r.Install.Writes }, func(r *result) float64 { return r.Floor.Writes }},
	{"install, of these of records", func(r *result) float64 { return r.Install.RecordWrites }, nil},
	{"install, requests to the management cluster for each cluster", func(r *result) float64 { return r.Install.HubRequests }, nil},
	{"the same by the Helm provider, seconds", func(r *result) float64 { return r.HelmProvider.Seconds }, nil},
	{"the same by the Helm provider, its CPU seconds", func(r *result) float64 { return r.HelmProvider.CPU }, nil},
	{"the same by the Helm provider, requests for each cluster", func(r *result) float64 { return r.HelmProvider.Requests }, nil},
	{"the same by the Helm provider, writes for each cluster", func(r *result) float64 { return r.HelmProvider.Writes }, nil},
	{"upgrade of one value, seconds", func(r *result) float64 { return r.Upgrade.Seconds }, nil},
	{"upgrade, requests for each cluster", func(r *result) float64 { return r.Upgrade.Requests }, nil},
	{"upgrade, writes for each cluster", func(r *result) float64 { return r.Upgrade.Writes }, nil},
	{"upgrade, of these of records", func(r *result) float64 { return r.Upgrade.RecordWrites }, nil},
	{"change of an object in each cluster at once, seconds until all are set right", func(r *result) float64 { return r.Drift.Seconds }, nil},
	{"change of an object, requests for each cluster", func(r *result) float64 { return r.Drift.Requests }, nil},
	{"change of an object, writes for each cluster", func(r *result) float64 { return r.Drift.Writes }, nil},
	{"restart, requests for each cluster", func(r *result) float64 { return r.Restart.Requests }, nil},
	{"restart, writes for each cluster", func(r *result) float64 { return r.Restart.Writes }, nil},
	{"30 s at rest, requests for each cluster", func(r *result) float64 { return r.Rest.Requests }, nil},
	{"30 s at rest, writes for each cluster", func(r *result) float64 { return r.Rest.Writes }, nil},
	{"30 s at rest, CPU seconds", func(r *result) float64 { return r.Rest.CPU }, nil},
	{"manager's memory at its peak, MiB", func(r *result) float64 { return r.PeakMiB }, nil},
	{"manager's memory at rest, MiB", func(r *result) float64 { return r.RestMiB }, nil},
}

// markdown returns the table of some runs.
func markdown(n int, results []result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d clusters, %d runs\n\n| | min | median | max | floor (median) | ratio |\n|---|---|---|---|---|---|\n", n, len(results))
	for _, row := range rows {
		values := sorted(results, row.value)
		if strings.Contains(row.name, "Helm provider") && values[0] == 0 {
			continue // it wasn't measured
		}
		middle := values[len(values)/2]
		fmt.Fprintf(&out, "| %s | %.4g | %.4g | %.4g |", row.name, values[0], middle, values[len(values)-1])
		if row.floor == nil {
			out.WriteString(" | |\n")
			continue
		}
		floors := sorted(results, row.floor)
		floor := floors[len(floors)/2]
		fmt.Fprintf(&out, " %.4g | %.2f |\n", floor, middle/floor)
	}
	return out.String()
}

func sorted(results []result, value func(*result) float64) []float64 {
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

// write writes fleet.json and fleet.md into a folder.
func write(dir string, results []result, table string) error {
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet.json"), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "fleet.md"), []byte(table), 0o644)
}
