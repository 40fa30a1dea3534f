// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

const (
	// fileScheme starts the repository of a dependency that is a directory beside the chart.
	fileScheme = "file://"
	// chartsDirectory has a chart's dependencies.
	chartsDirectory = "charts/"
	// maxNeighbours is how many charts may be put into one, for each place where one is.
	maxNeighbours = 64
	// maxDepth is how deep dependencies may depend on others. 1 is common.
	maxDepth = 4
)

// complete returns the files of a chart's directory as `helm package` packs them, and puts
// those dependencies into charts/ that have file:// for a repository and aren't there, as
// `helm dependency build` does. The renderer refuses a chart that misses others. It returns
// the paths of directories that it needs besides, if there are any.
func complete(job *Complete) (files []artifact.File, missing []string, err error) {
	c := &completion{job: job, sources: map[string]string{}}
	if c.files, err = artifact.Packaged(job.Charts[job.At]); err != nil {
		return nil, nil, err
	}
	if artifact.Find(c.files, artifact.ChartFile) == nil {
		return nil, nil, failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	if err := c.add(slices.Clone(c.files), "", []string{job.At}); err != nil || len(c.missing) > 0 {
		return nil, c.missing, err
	}
	artifact.SortFiles(c.files)
	return c.files, nil, nil
}

// completion is a chart that gets its neighbours.
type completion struct {
	job     *Complete
	files   []artifact.File
	missing []string
	sources map[string]string // path of what was put into each directory of the chart
}

// add puts the neighbours of the chart at the last of the paths, which the others depend
// on, into its directory.
func (c *completion) add(files []artifact.File, directory string, paths []string) error {
	needs := readRequirements(files)
	for i, declared := range needs.declared {
		isNeighbour := strings.HasPrefix(declared.Repository, fileScheme)
		if isVendored(files, declared.Name) || directory == "" && !isNeighbour {
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
	case len(c.sources)+len(c.missing) >= maxNeighbours:
		return failure.New(failure.ArtifactTooLarge, "the chart has more than %d dependencies beside it; package it with them (`helm package --dependency-update`)", maxNeighbours)
	}
	files, read := c.job.Charts[at]
	switch {
	case !read:
		if !slices.Contains(c.missing, at) {
			c.missing = append(c.missing, at)
		}
		return nil
	case files == nil:
		return failure.New(failure.ArtifactNotFound, "there is no directory %s in the artifact; put the chart there, or correct the path", failure.Quote(at))
	}
	files, err := artifact.Packaged(files)
	if err != nil {
		return err
	}
	name, version := chartOf(files)
	if name != declared.Name || declared.Version != "" && !chartutil.IsCompatibleRange(declared.Version, version) || !chartName.MatchString(name) || !chartVersion.MatchString(version) {
		return failure.New(failure.ArtifactInvalid, "what is at %s is chart %s; correct one of both, and run `helm dependency update`", failure.Quote(at), failure.Quote(name+" "+version))
	}
	to := directory + chartsDirectory + name + "-" + version + "/"
	if there, taken := c.sources[to]; taken && there != at {
		return failure.New(failure.ArtifactRefused, "the chart has another dependency of that name and version, from %s; take one of both away", failure.Quote(there))
	} else if taken {
		return nil // it is there under another alias
	}
	c.sources[to] = at
	for _, file := range files {
		if err := artifact.CheckName(to + file.Name); err != nil {
			return err
		}
		c.files = append(c.files, artifact.File{Name: to + file.Name, Data: file.Data})
	}
	if err := artifact.CheckSizes(c.files, c.job.Limits); err != nil {
		return err
	}
	return c.add(files, to, append(paths[:len(paths):len(paths)], at))
}

// neighbourPath returns the path of a directory beside the chart at that path; "" if the
// dependency is no such directory, or one outside of the artifact.
func neighbourPath(at string, declared *chart.Dependency) string {
	written, is := strings.CutPrefix(declared.Repository, fileScheme)
	to := path.Join(at, written)
	if !is || written == "" || path.IsAbs(written) || !fs.ValidPath(to) || strings.ContainsRune(to, 0) {
		return ""
	}
	return to
}

// requirementsFile says what a chart of apiVersion v1 depends on.
const requirementsFile = "requirements.yaml"

// Names and versions of charts, as far as they may become names of directories.
var (
	chartName    = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._-]{0,251}[0-9A-Za-z])?$`)
	chartVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)
	// vendoredVersion is what comes after the name of a chart in charts/.
	vendoredVersion = regexp.MustCompile(`^-v?[0-9][^/]*([.]tgz$|/)`)
)

// requirements are the dependencies that a chart declares.
type requirements struct {
	chart    string // its name and version
	file     string // that declares them
	declared []*chart.Dependency
}

// readRequirements reads those of a chart. A chart that can't be read has none: the
// renderer says what is wrong with it.
func readRequirements(files []artifact.File) requirements {
	var metadata chart.Metadata
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return requirements{}
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	file := artifact.ChartFile
	if decode(artifact.Find(files, requirementsFile), &metadata) {
		file = requirementsFile // whatever the apiVersion, as in Helm's loader
	}
	if metadata.Validate() != nil {
		return requirements{}
	}
	return requirements{chart: metadata.Name + " " + metadata.Version, file: file, declared: metadata.Dependencies}
}

// isVendored reports whether a chart of that name is in a chart's charts directory, under the
// name that Helm gives it there.
func isVendored(files []artifact.File, name string) bool {
	return slices.ContainsFunc(files, func(file artifact.File) bool {
		below, ok := strings.CutPrefix(file.Name, chartsDirectory+name)
		return ok && (strings.HasPrefix(below, "/") || vendoredVersion.MatchString(below))
	})
}

// refused returns an error about the dependency of this index, which names it.
func (r requirements) refused(index int, err error) error {
	declared := strings.TrimSpace(r.declared[index].Name + " " + r.declared[index].Version)
	return failure.Within(fmt.Sprintf("dependencies[%d] of %s of chart %s, %s", index, r.file, failure.Quote(r.chart), failure.Quote(declared)), err)
}

// chartOf returns the name and version that Chart.yaml says, both "" if it can't be read.
func chartOf(files []artifact.File) (name, version string) {
	var metadata struct{ Name, Version string }
	if !decode(artifact.Find(files, artifact.ChartFile), &metadata) {
		return "", ""
	}
	return metadata.Name, metadata.Version
}

// decode reads a YAML file as Helm does. It returns false if there is none, or if it can't
// be read.
func decode(file *artifact.File, into any) bool {
	return file != nil && yaml.Unmarshal(file.Data, into) == nil
}
