// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// WithBeside puts those dependencies into a chart's directory that have file:// for a
// repository and aren't in charts/. They are read from beside it, by their path in the
// artifact; what is outside of that can't be named. All of it together is held to the
// limits of one chart, before it is put together: a small artifact can have one directory
// be read many times.
func WithBeside(files []artifact.File, at string, limits artifact.Limits, read func(path string) ([]artifact.File, error)) ([]artifact.File, error) {
	b := &beside{read: read, left: newEffort(), checked: artifact.NewAllowance(limits), at: map[string]string{}}
	if err := b.put(files, "", []string{at}); err != nil {
		return nil, err
	}
	if len(b.parts) == 0 {
		return files, nil
	}
	return assembled(files, b.parts, limits) // all of it has been checked
}

type beside struct {
	read    func(path string) ([]artifact.File, error)
	left    *effort
	checked *artifact.Allowance
	parts   []part
	at      map[string]string // path of each, by directory
}

// part is a chart from beside another one, and the directory of that one it belongs in.
type part struct {
	directory string
	files     []artifact.File
}

// put finds the dependencies of the chart at the last of the paths, which the others depend
// on, and those of these. It is put into the directory.
func (b *beside) put(files []artifact.File, directory string, paths []string) error {
	needs := readRequirements(files, b.left)
	if err := b.left.done(); err != nil {
		return err
	}
	isRoot := directory == ""
	if isRoot && !slices.ContainsFunc(needs.declared, isBeside) {
		return nil
	}
	if err := b.checked.Check(files); err != nil {
		return err // nobody has looked into the archives of a directory before
	}
	if len(needs.declared) > Max {
		return tooMany()
	}
	vendored := vendoredIn(files, b.left)
	if err := b.left.done(); err != nil {
		return err
	}
	for i, declared := range needs.declared {
		if vendored.Has(declared.Name) || isRoot && !isBeside(declared) { // of the latter the renderer tells
			continue
		}
		if err := b.one(declared, directory, paths); err != nil {
			if known, ok := errors.AsType[*failure.Error](err); ok {
				return needs.refused(i, known)
			}
			return err
		}
	}
	return nil
}

// one puts one dependency into the directory of its chart.
func (b *beside) one(declared *chart.Dependency, directory string, paths []string) error {
	at := pathBeside(paths[len(paths)-1], declared)
	switch {
	case !isBeside(declared):
		return failure.New(failure.ArtifactInvalid, "it isn't in charts/; package the chart with its dependencies (`helm package --dependency-update`)")
	case len(declared.Version) > maxRange:
		return failure.New(failure.ArtifactInvalid, "its version is longer than %d bytes; shorten it", maxRange)
	case at == "":
		return failure.New(failure.ArtifactRefused, "its path has to be relative, and to stay in the artifact; correct it")
	case slices.ContainsFunc(paths, func(above string) bool { return above == at || at == "." || strings.HasPrefix(above, at+"/") }):
		return failure.New(failure.ArtifactRefused, "it depends on a chart that depends on it, or is in it; take one of both dependencies away")
	case len(paths) > MaxDepth:
		return failure.New(failure.ArtifactRefused, "dependencies depend on others more than %d deep; take one out", MaxDepth)
	}
	if err := b.left.oneChart(); err != nil {
		return err
	}
	files, err := b.read(at)
	if err != nil {
		return err
	}
	name, version := ChartOf(files)
	if name != declared.Name || !allows(declared, version) || !chartName.MatchString(name) || !chartVersion.MatchString(version) {
		return failure.New(failure.ArtifactInvalid, "what is at %s is chart %s; correct one of both, and run `helm dependency update`", failure.Quote(at), failure.Quote(name+" "+version))
	}
	added := part{directory: directory + chartsDirectory + name + "-" + version + "/", files: files}
	if b.at[added.directory] == at {
		return nil // it is there under another alias
	}
	b.at[added.directory] = at
	b.parts = append(b.parts, added)
	return b.put(files, added.directory, append(paths[:len(paths):len(paths)], at))
}

// assembled returns all files of a chart and of the parts, by their names in the chart.
func assembled(files []artifact.File, parts []part, limits artifact.Limits) ([]artifact.File, error) {
	all := slices.Clone(files)
	for _, added := range parts {
		for _, file := range all {
			if strings.HasPrefix(file.Name, added.directory) || file.Name+"/" == added.directory {
				return nil, failure.New(failure.ArtifactRefused, "it has %s already, with something else in it; take that away", failure.Quote(strings.TrimSuffix(added.directory, "/")))
			}
		}
		for _, file := range added.files {
			name := added.directory + file.Name
			if err := artifact.CheckName(name, limits); err != nil {
				return nil, err
			}
			all = append(all, artifact.File{Name: name, Data: file.Data})
		}
		if len(all) > limits.Entries {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries, with its dependencies; take out what isn't needed", limits.Entries)
		}
	}
	slices.SortFunc(all, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// isBeside reports whether the dependency is a directory beside the chart.
func isBeside(declared *chart.Dependency) bool {
	return strings.HasPrefix(declared.Repository, fileScheme)
}

// pathBeside returns the path of a directory beside the chart at that path; "" if it may not be
// named.
func pathBeside(at string, declared *chart.Dependency) string {
	written := strings.TrimPrefix(declared.Repository, fileScheme)
	to := path.Join(at, written)
	if written == "" || path.IsAbs(written) || to == ".." || strings.HasPrefix(to, "../") || strings.ContainsRune(to, 0) {
		return ""
	}
	return to
}

// BesideOf returns the paths that the chart at that path depends on.
func BesideOf(at string, files []artifact.File) []string {
	if !slices.ContainsFunc(files, func(file artifact.File) bool { return bytes.Contains(file.Data, []byte(fileScheme)) }) {
		return nil // the usual case, told without parsing
	}
	var paths []string
	for _, declared := range readRequirements(files, newEffort()).declared {
		if to := pathBeside(at, declared); isBeside(declared) && to != "" && len(paths) < Max {
			paths = append(paths, to)
		}
	}
	return paths
}

// NoDirectory is the error of a file in the place of a chart's directory.
func NoDirectory(name string) *failure.Error {
	return failure.New(failure.ArtifactInvalid, "%s isn't a directory; put the chart there as one, or package the chart with its dependencies (`helm package --dependency-update`)", failure.Quote(name))
}

func tooMany() *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d dependencies, the most that is accepted, those of its dependencies counted in; package the chart with them (`helm package --dependency-update`)", Max)
}
