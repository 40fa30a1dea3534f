// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"bytes"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// fileScheme starts the repository of a dependency that is a directory beside the chart.
	fileScheme = "file://"
	// chartsDirectory has a chart's dependencies.
	chartsDirectory = "charts/"
	// MaxNeighbours is how many charts may be put into one, for each place where one is.
	MaxNeighbours = 64
	// maxDepth is how deep dependencies may depend on others. 1 is common.
	maxDepth = 4
)

// MayHaveNeighbours reports whether a chart may depend on one beside it. It reads no YAML.
func MayHaveNeighbours(files []artifact.File) bool {
	return slices.ContainsFunc(files, func(file artifact.File) bool {
		return (file.Name == artifact.ChartFile || file.Name == requirementsFile) && bytes.Contains(file.Data, []byte(fileScheme))
	})
}

// neighboursOf returns the paths of the directories beside the chart that it depends on.
// Those that leave the artifact are left out: [complete] refuses them.
func neighboursOf(at string, files []artifact.File) []string {
	var paths []string
	for _, declared := range readRequirements(files).declared {
		if to := neighbourPath(at, declared); to != "" && !slices.Contains(paths, to) {
			paths = append(paths, to)
		}
	}
	return paths
}

// complete returns the files of a chart's directory as `helm package` packs them, and puts
// those dependencies into charts/ that have file:// for a repository and aren't there, as
// `helm dependency build` does. The renderer refuses a chart that misses others.
func complete(job *Complete) ([]artifact.File, error) {
	charts := make(map[string][]artifact.File, len(job.Charts))
	for at, files := range job.Charts {
		packaged, err := artifact.Packaged(files)
		if err != nil {
			return nil, err
		}
		charts[at] = packaged
	}
	if artifact.Find(charts[job.At], artifact.ChartFile) == nil {
		return nil, failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	c := &completion{charts: charts, limits: job.Limits, sources: map[string]string{}, files: slices.Clone(charts[job.At])}
	if err := c.add(charts[job.At], "", []string{job.At}); err != nil {
		return nil, err
	}
	artifact.SortFiles(c.files)
	return c.files, nil
}

// completion is a chart that gets its neighbours.
type completion struct {
	charts  map[string][]artifact.File // by path in the artifact
	limits  artifact.Limits
	files   []artifact.File
	sources map[string]string // path of what was put into each directory of the chart
}

// add puts the neighbours of the chart at the last of the paths, which the others depend
// on, into its directory.
func (c *completion) add(files []artifact.File, directory string, paths []string) error {
	needs := readRequirements(files)
	vendored := vendoredIn(files)
	for i, declared := range needs.declared {
		isNeighbour := strings.HasPrefix(declared.Repository, fileScheme)
		if vendored.Has(declared.Name) || directory == "" && !isNeighbour {
			continue
		}
		if err := c.one(declared, directory, paths); err != nil {
			return needs.refused(i, err)
		}
	}
	return nil
}

// one puts one neighbour into the directory of its chart.
func (c *completion) one(declared *chart.Dependency, directory string, paths []string) error {
	at := neighbourPath(paths[len(paths)-1], declared)
	switch {
	case !strings.HasPrefix(declared.Repository, fileScheme):
		return failure.New(failure.ArtifactInvalid, "it isn't in charts/; package the chart with its dependencies (`helm package --dependency-update`)")
	case at == "":
		return failure.New(failure.ArtifactRefused, "its path has to be relative, and to stay in the artifact; correct it")
	case slices.ContainsFunc(paths, func(above string) bool { return above == at || at == "." || strings.HasPrefix(above, at+"/") }):
		return failure.New(failure.ArtifactRefused, "it depends on a chart that depends on it, or is in it; take one of both dependencies away")
	case len(paths) > maxDepth:
		return failure.New(failure.ArtifactRefused, "dependencies depend on others more than %d deep; take one out", maxDepth)
	case len(c.sources) == MaxNeighbours:
		return failure.New(failure.ArtifactTooLarge, "the chart has more than %d dependencies beside it; package it with them (`helm package --dependency-update`)", MaxNeighbours)
	}
	files, found := c.charts[at]
	if !found {
		return failure.New(failure.ArtifactNotFound, "there is no directory %s in the artifact; put the chart there, or correct the path", failure.Quote(at))
	}
	name, version := chartOf(files)
	if name != declared.Name || !allows(declared, version) || !chartName.MatchString(name) || !chartVersion.MatchString(version) {
		return failure.New(failure.ArtifactInvalid, "what is at %s is chart %s; correct one of both, and run `helm dependency update`", failure.Quote(at), failure.Quote(name+" "+version))
	}
	to := directory + chartsDirectory + name + "-" + version + "/"
	if c.sources[to] == at {
		return nil // it is there under another alias
	}
	if slices.ContainsFunc(c.files, func(file artifact.File) bool { return strings.HasPrefix(file.Name+"/", to) }) {
		return failure.New(failure.ArtifactRefused, "the chart has %s already, with something else in it; take that away", failure.Quote(strings.TrimSuffix(to, "/")))
	}
	c.sources[to] = at
	for _, file := range files {
		if err := artifact.CheckName(to+file.Name, c.limits); err != nil {
			return err
		}
		c.files = append(c.files, artifact.File{Name: to + file.Name, Data: file.Data})
	}
	if err := artifact.CheckSizes(c.files, c.limits); err != nil {
		return err
	}
	return c.add(files, to, append(paths[:len(paths):len(paths)], at))
}

// neighbourPath returns the path of a directory beside the chart at that path; "" if the
// dependency is no such directory, or one outside of the artifact.
func neighbourPath(at string, declared *chart.Dependency) string {
	written, is := strings.CutPrefix(declared.Repository, fileScheme)
	to := path.Join(at, written)
	if !is || written == "" || path.IsAbs(written) || to == ".." || strings.HasPrefix(to, "../") || strings.ContainsRune(to, 0) {
		return ""
	}
	return to
}
