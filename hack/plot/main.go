// SPDX-License-Identifier: Apache-2.0

// Plot draws what `make bench` measured: time and memory against the number of clusters, as time.svg and memory.svg beside
// fleet.json, in the folder that it is given.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// measured are the runs of a fleet, in the format of fleet.json.
type measured struct {
	Size struct{ Clusters, Instances int }
	Runs []run
}

type run struct {
	Install, Floor, HelmProvider, Upgrade, Restart struct{ Seconds float64 }
	PeakMiB, RestMiB, HeapMiB                      float64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: plot FOLDER")
	}
	if err := draw(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func draw(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "fleet.json"))
	if err != nil {
		return err
	}
	var all []measured
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("reading fleet.json: %w", err)
	}
	return errors.Join(
		save(all, filepath.Join(dir, "time.svg"), "Time", "seconds",
			line{"install", func(r run) float64 { return r.Install.Seconds }},
			line{"install, floor", func(r run) float64 { return r.Floor.Seconds }},
			line{"install, Helm provider", func(r run) float64 { return r.HelmProvider.Seconds }},
			line{"upgrade of one value", func(r run) float64 { return r.Upgrade.Seconds }},
			line{"restart", func(r run) float64 { return r.Restart.Seconds }},
		),
		save(all, filepath.Join(dir, "memory.svg"), "Memory of the manager", "MiB",
			line{"peak", func(r run) float64 { return r.PeakMiB }},
			line{"at rest after a restart", func(r run) float64 { return r.RestMiB }},
			line{"heap at rest", func(r run) float64 { return r.HeapMiB }},
		),
	)
}

// line is drawn of a value of the runs.
type line struct {
	name  string
	value func(run) float64
}

// points returns the median of the runs of each fleet with one instance. A fleet that wasn't measured has no point.
func points(all []measured, value func(run) float64) plotter.XYs {
	var xys plotter.XYs
	for _, m := range all {
		if m.Size.Instances != 1 {
			continue
		}
		var values []float64
		for _, r := range m.Runs {
			values = append(values, value(r))
		}
		slices.Sort(values)
		if middle := values[len(values)/2]; middle > 0 {
			xys = append(xys, plotter.XY{X: float64(m.Size.Clusters), Y: middle})
		}
	}
	return xys
}

func save(all []measured, file, title, unit string, lines ...line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "clusters", unit
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left = true, true
	var drawn []any
	for _, l := range lines {
		if xys := points(all, l.value); len(xys) > 0 {
			drawn = append(drawn, l.name, xys)
		}
	}
	return errors.Join(plotutil.AddLinePoints(p, drawn...), p.Save(18*vg.Centimeter, 10*vg.Centimeter, file))
}
