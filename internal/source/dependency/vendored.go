// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// chartsDirectory has a chart's dependencies.
const chartsDirectory = "charts/"

// vendored is a chart in charts/.
type vendored struct {
	name, version string
	directory     string // relative to the chart it is in, with a slash at its end; "" of an archive
	fits          []bool // which of those that are declared it is
	fitsAny       bool
}

type allVendored []vendored

// vendoredIn lists the charts in a chart's charts directory, as Helm loads them. It
// looks into archives only if something is declared.
func vendoredIn(files []artifact.File, within string, needs requirements, left *effort) allVendored {
	if len(needs.declared) == 0 {
		return nil
	}
	var metadata []artifact.File
	var found allVendored
	for _, file := range files {
		name, ok := strings.CutPrefix(file.Name, within+chartsDirectory)
		if !ok || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		directory, rest, nested := strings.Cut(name, "/")
		var is artifact.File
		switch {
		case nested && rest == artifact.ChartFile && path.Ext(directory) != ".tgz":
			is, directory = file, chartsDirectory+directory+"/"
		case !nested && path.Ext(name) == ".tgz":
			is, directory = artifact.File{Data: chartFileOf(file.Data)}, ""
		default:
			continue
		}
		if !left.oneVendored(is) {
			return nil
		}
		metadata, found = append(metadata, is), append(found, vendored{directory: directory})
	}
	for i := range found { // now that they are known not to be too many
		var is struct{ Name, Version string }
		if decode(&metadata[i], &is) {
			found[i].name, found[i].version = is.Name, is.Version
		}
	}
	found = slices.DeleteFunc(found, func(v vendored) bool { return v.name == "" })
	found.compare(needs.declared)
	return found
}

// compare finds out which charts fit which dependencies. All that has to be parsed is
// parsed once: a hostile chart has many of both.
func (all allVendored) compare(declared []*chart.Dependency) {
	ranges := make([]versionRange, len(declared))
	for j, d := range declared {
		ranges[j] = rangeOf(d.Version)
	}
	for i := range all {
		is := &all[i]
		version := versionOf(is.version)
		is.fits = make([]bool, len(declared))
		for j, d := range declared {
			is.fits[j] = is.name == d.Name && ranges[j].has(version)
			is.fitsAny = is.fitsAny || is.fits[j]
		}
	}
}

// serve returns the vendored chart that is the declared one of that index and name. One
// that fits nothing that is declared counts for all of its name: Helm takes it as it is.
func (all allVendored) serve(index int, name string) *vendored {
	for i := range all {
		if all[i].fits[index] {
			return &all[i]
		}
	}
	for i := range all {
		if all[i].name == name && !all[i].fitsAny {
			return &all[i]
		}
	}
	return nil
}

// versionRange are the versions that a dependency may have.
type versionRange struct {
	any  bool
	only *semver.Constraints // nil: none
}

func rangeOf(text string) versionRange {
	only, err := semver.NewConstraint(text)
	if err != nil {
		only = nil
	}
	return versionRange{any: text == "", only: only}
}

// has tells whether a dependency may be of this version, as Helm tells it
// (chartutil.IsCompatibleRange). Without a version, it is nil.
func (r versionRange) has(version *semver.Version) bool {
	return r.any || r.only != nil && version != nil && r.only.Check(version)
}

// versionOf is nil if the text isn't a version.
func versionOf(text string) *semver.Version {
	version, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return version
}

// chartFileOf returns an archive's Chart.yaml; nil if there is none. The archive has
// been checked before.
func chartFileOf(archive []byte) []byte {
	expanded, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	entries := tar.NewReader(expanded)
	for {
		header, err := entries.Next()
		if err != nil {
			return nil
		}
		if _, name, _ := strings.Cut(header.Name, "/"); name != artifact.ChartFile || header.Size > MaxChartFile {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return nil
		}
		return artifact.TrimBOM(data)
	}
}
