// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"bytes"
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
	parts   []Part
	at      map[string]string // path of each, by directory
}

// put finds the dependencies of the chart at the last of the paths, which the others depend
// on, and those of these. It is put into the directory.
func (b *beside) put(files []artifact.File, directory string, paths []string) error {
	needs := readRequirements(files, "", b.left)
	if err := b.left.done(); err != nil {
		return err
	}
	if directory == "" && !needs.anyBeside() {
		return nil
	}
	if err := b.checked.Check(files); err != nil {
		return err // nobody has looked into the archives of a directory before
	}
	if !needs.anyBeside() {
		return nil
	}
	if err := needs.fit(""); err != nil {
		return err
	}
	vendored := vendoredIn(files, "", needs, b.left)
	if err := b.left.done(); err != nil {
		return err
	}
	for i, declared := range needs.declared {
		if !strings.HasPrefix(declared.Repository, fileScheme) || vendored.serve(i, declared.Name) != nil {
			continue
		}
		w := needs.want(i, "")
		if err := b.one(w, needs, declared, directory, paths); err != nil {
			return w.Refused(err)
		}
	}
	return nil
}

// one reads a dependency with its own.
func (b *beside) one(w Want, needs requirements, declared *chart.Dependency, directory string, paths []string) error {
	at := pathBeside(paths[len(paths)-1], declared)
	switch {
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
	fits := rangeOf(declared.Version).has(versionOf(version)) // there is but one: without a lock, a range will do
	if needs.lock != nil {
		locked, err := needs.lockedVersion(declared)
		if err != nil {
			return err
		}
		fits = version == locked
	}
	if name != w.Name || !fits || !dependencyName.MatchString(name) || !dependencyVersion.MatchString(version) {
		return failure.New(failure.ArtifactInvalid, "what is at %s is chart %s; correct one of both, and run `helm dependency update`", failure.Quote(at), failure.Quote(name+" "+version))
	}
	part := Part{Directory: directory + w.DirectoryOf(version), Files: files}
	if b.at[part.Directory] == at {
		return nil // it is there under another alias
	}
	b.at[part.Directory] = at
	b.parts = append(b.parts, part)
	return b.put(files, part.Directory, append(paths[:len(paths):len(paths)], at))
}

// pathBeside is the path of a dependency in the artifact, "" if it leads out of it.
func pathBeside(at string, declared *chart.Dependency) string {
	written := strings.TrimPrefix(declared.Repository, fileScheme)
	to := path.Join(at, written)
	if written == "" || path.IsAbs(written) || to == ".." || strings.HasPrefix(to, "../") || strings.ContainsRune(to, 0) {
		return ""
	}
	return to
}

// BesideOf lists the paths of the dependencies that may have to be read from beside
// the chart at the path, given its files that say so.
func BesideOf(at string, files []artifact.File) []string {
	if !slices.ContainsFunc(files, func(file artifact.File) bool { return bytes.Contains(file.Data, []byte(fileScheme)) }) {
		return nil // the usual case, told without parsing
	}
	var paths []string
	for _, declared := range readRequirements(files, "", newEffort()).declared {
		if to := pathBeside(at, declared); strings.HasPrefix(declared.Repository, fileScheme) && to != "" && len(paths) < Max {
			paths = append(paths, to)
		}
	}
	return paths
}

// anyBeside tells whether a dependency is beside the chart.
func (r requirements) anyBeside() bool {
	return slices.ContainsFunc(r.declared, func(declared *chart.Dependency) bool { return strings.HasPrefix(declared.Repository, fileScheme) })
}

// NoDirectory is the error of a path with something else than a chart's directory.
func NoDirectory(name string) *failure.Error {
	return failure.New(failure.ArtifactInvalid, "%s isn't a directory; put the chart there as one, or package the chart with its dependencies (`helm package --dependency-update`)", failure.Quote(name))
}
