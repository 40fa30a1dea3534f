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
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// chartsDirectory has a chart's dependencies.
	chartsDirectory = "charts/"
	// fileScheme of a dependency that is beside the chart, in the same artifact.
	fileScheme = "file://"
)

// Missing finds the dependencies that a chart wants and doesn't have, and says which
// version of each is to be had. What is vendored is taken as it is, as Helm does:
// nobody looks whether that, in turn, has all of its own.
func Missing(files []render.File) ([]Want, error) {
	return missingWithin(files, "", 0)
}

func missingWithin(files []render.File, within string, depth int) ([]Want, error) {
	needs := readRequirements(files, within)
	if len(needs.declared) > Max {
		return nil, TooMany()
	}
	vendored := vendoredIn(files, within, needs)
	var wants []Want
	for i, declared := range needs.declared {
		w := needs.want(i, within)
		if has := vendored.serve(declared, needs.declared); has != nil {
			if depth < MaxDepth && has.directory == w.DirectoryOf(has.version) && strings.HasPrefix(declared.Repository, fileScheme) {
				// It was put there from beside the chart, and may miss some itself.
				below, err := missingWithin(files, within+has.directory, depth+1)
				if err != nil {
					return nil, err
				}
				wants = append(wants, below...)
			}
			continue
		}
		version, err := needs.version(declared)
		if err != nil {
			return nil, w.Refused(err)
		}
		w.Version = version
		if i := slices.IndexFunc(wants, w.sameChart); i < 0 {
			wants = append(wants, w)
		} else if strings.TrimSuffix(wants[i].Repository, "/") != strings.TrimSuffix(w.Repository, "/") {
			return nil, w.Refused(failure.New(failure.ArtifactInvalid, "the chart wants the same version from another repository, too; take it from one of both"))
		}
	}
	return wants, nil
}

// sameChart tells whether both are one chart under two aliases.
func (w Want) sameChart(other Want) bool {
	return w.Within == other.Within && w.Name == other.Name && w.Version == other.Version
}

// Want is the dependency with that index, in whichever version.
func (r requirements) want(index int, within string) Want {
	declared := r.declared[index]
	return Want{
		Within: within, by: r.chart, field: fieldOf(r.file, index),
		Name: declared.Name, Version: declared.Version, Repository: declared.Repository,
	}
}

// Version is the one that the dependency has to be fetched in.
func (r requirements) version(declared *chart.Dependency) (string, error) {
	switch {
	case declared.Repository == "":
		return "", failure.New(failure.ArtifactInvalid, "it isn't in charts/, and has no repository; package the chart with it, or say where it is")
	case isName(declared.Repository) || strings.HasPrefix(declared.Repository, fileScheme):
		return declared.Version, nil // it is refused for that, later
	case r.lock == nil && !versions.IsExact(declared.Version):
		return "", failure.New(failure.ArtifactInvalid, "it isn't in charts/, its version is a range, and there is no %s to say which one it is; "+updateLock, r.lockFile, r.lockFile)
	case r.lock == nil:
		return declared.Version, nil
	}
	return r.lockedVersion(declared)
}

// isName tells whether a repository has no address, but the name that the chart's author
// has for it. The lock is no good then, either: its sum is of the address.
func isName(repository string) bool {
	return strings.HasPrefix(repository, "@") || strings.HasPrefix(repository, "alias:")
}

// updateLock is the way out of a lock that doesn't do.
const updateLock = "run `helm dependency update`, and package the chart with the new %s, or with its dependencies (`helm package --dependency-update`)"

// lockedVersion is the version that the lock has for the dependency.
func (r requirements) lockedVersion(declared *chart.Dependency) (string, error) {
	if !r.inSync() {
		return "", failure.New(failure.ArtifactInvalid, "%s isn't up to date with %s: it was made for other dependencies; "+updateLock, r.lockFile, r.file, r.lockFile)
	}
	locked := r.locked(declared)
	if _, err := semver.NewVersion(locked); err != nil {
		return "", failure.New(failure.ArtifactInvalid, "%s has no version for it that %s allows; "+updateLock, r.lockFile, r.file, r.lockFile)
	}
	return locked, nil
}

// vendored is a chart in charts/.
type vendored struct {
	name, version string
	directory     string // relative to the chart it is in, with a slash at its end; "" of an archive
}

type allVendored []vendored

// vendoredIn lists the charts in a chart's charts directory, as Helm loads them. It
// looks into archives only if something is declared.
func vendoredIn(files []render.File, within string, needs requirements) allVendored {
	if len(needs.declared) == 0 {
		return nil
	}
	var found allVendored
	for _, file := range files {
		name, ok := strings.CutPrefix(file.Name, within+chartsDirectory)
		if !ok || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		directory, rest, nested := strings.Cut(name, "/")
		var metadata []byte
		switch {
		case nested && rest == artifact.ChartFile && path.Ext(directory) != ".tgz":
			metadata, directory = file.Data, chartsDirectory+directory+"/"
		case !nested && path.Ext(name) == ".tgz":
			metadata, directory = chartFileOf(file.Data), ""
		default:
			continue
		}
		var is chart.Metadata
		if decode(&render.File{Data: metadata}, &is) {
			found = append(found, vendored{name: is.Name, version: is.Version, directory: directory})
		}
	}
	return found
}

// serve returns the vendored chart that is the declared one. One that fits nothing
// that is declared counts for all of its name: Helm takes it as it is.
func (all allVendored) serve(wanted *chart.Dependency, declared []*chart.Dependency) *vendored {
	for i := range all {
		if all[i].name == wanted.Name && satisfies(all[i].version, wanted.Version) {
			return &all[i]
		}
	}
	for i := range all {
		fits := func(other *chart.Dependency) bool {
			return other.Name == all[i].name && satisfies(all[i].version, other.Version)
		}
		if all[i].name == wanted.Name && !slices.ContainsFunc(declared, fits) {
			return &all[i]
		}
	}
	return nil
}

// satisfies tells whether a dependency may be of this version, as Helm tells it.
func satisfies(version, allowed string) bool {
	return allowed == "" || chartutil.IsCompatibleRange(allowed, version)
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
