// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"bytes"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// maxYAML is the size of the files that say what a chart depends on, with those of
	// all charts in it that are looked at. Umbrella charts with 30 others have 100 KiB.
	maxYAML = 256 << 10 // bytes
	// maxItems is how many lines and list items these have: what they take to parse.
	maxItems = 32 << 10
	// maxVendored is how many charts in charts directories are looked at. Large umbrella
	// charts have 30.
	maxVendored = 256
	// maxRange is the length of the version that a dependency may have.
	maxRange = 256 // bytes
)

// effort is what is left of the work that one chart may cost, with those in it and beside it.
type effort struct {
	yaml     int // bytes
	items    int
	vendored int
	charts   int            // whose dependencies are looked for, but the first
	spent    *failure.Error // what was too much; nil if nothing was
}

func newEffort() *effort {
	return &effort{yaml: maxYAML, items: maxItems, vendored: maxVendored, charts: Max}
}

// decode reads a small YAML file as Helm does. It is false if there is none, or if it
// can't be read.
func (e *effort) decode(file *artifact.File, into any) bool {
	return file != nil && e.spend(*file) && decode(file, into)
}

// spend counts a file that is to be decoded, if it will be. It is false if there are too many.
func (e *effort) spend(file artifact.File) bool {
	if len(file.Data) > MaxChartFile {
		return e.spent == nil
	}
	e.yaml -= len(file.Data)
	e.items -= bytes.Count(file.Data, []byte{','}) + bytes.Count(file.Data, []byte{'\n'})
	if (e.yaml < 0 || e.items < 0) && e.spent == nil {
		e.spent = failure.New(failure.ArtifactTooLarge, "its Chart.yaml and the like, with those of the charts in it, are larger than %d bytes, or have more than %d lines and list items, together, the most that is accepted; make them smaller", maxYAML, maxItems)
	}
	return e.spent == nil
}

// oneVendored counts a chart in a charts directory, with its Chart.yaml. It is false if
// there are too many.
func (e *effort) oneVendored(metadata artifact.File) bool {
	if e.vendored--; e.vendored < 0 && e.spent == nil {
		e.spent = failure.New(failure.ArtifactTooLarge, "it has more than %d charts in its charts directories, the most that is accepted of a chart with dependencies; package it with them", maxVendored)
	}
	return e.spend(metadata)
}

// oneChart counts a chart whose dependencies are looked for.
func (e *effort) oneChart() error {
	if e.charts--; e.charts < 0 {
		return tooMany()
	}
	return nil
}

// done is the error if anything was too much.
func (e *effort) done() error {
	if e.spent != nil {
		return e.spent
	}
	return nil
}
