// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// fileScheme of a dependency that is beside the chart, in the same artifact.
const fileScheme = "file://"

// Missing finds the dependencies that a chart wants and doesn't have, and says which
// version of each is to be had. What is vendored is taken as it is, as Helm does:
// nobody looks whether that, in turn, has all of its own.
func Missing(files []artifact.File) ([]Want, error) {
	s := search{files: files, left: newEffort(), seen: map[string]bool{}}
	if err := s.within("", 0); err != nil {
		return nil, err
	}
	return s.wants, nil
}

// search is a look for what a chart misses, and charts in it that were beside it.
type search struct {
	files []artifact.File
	left  *effort
	seen  map[string]bool // directories
	wants []Want
}

// within looks for what the chart in that directory misses.
func (s *search) within(directory string, depth int) error {
	needs := readRequirements(s.files, directory, s.left)
	if err := needs.fit(directory); err != nil {
		return err
	}
	vendored := vendoredIn(s.files, directory, needs, s.left)
	if err := s.left.done(); err != nil {
		return err
	}
	for i, declared := range needs.declared {
		w := needs.want(i, directory)
		has := vendored.serve(i, declared.Name)
		switch {
		case has == nil:
			if err := s.want(w, needs, declared); err != nil {
				return err
			}
		case depth < MaxDepth && has.directory == w.DirectoryOf(has.version) && strings.HasPrefix(declared.Repository, fileScheme):
			// It was put there from beside the chart, and may miss some itself.
			if err := s.below(directory+has.directory, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// below looks into a chart in another one, once, however often that has it.
func (s *search) below(directory string, depth int) error {
	if s.seen[directory] {
		return nil
	}
	s.seen[directory] = true
	if err := s.left.oneChart(); err != nil {
		return err
	}
	return s.within(directory, depth)
}

// want notes a dependency that is missing.
func (s *search) want(w Want, needs requirements, declared *chart.Dependency) error {
	version, err := needs.version(declared)
	if err != nil {
		return w.Refused(err)
	}
	w.Version = version
	if i := slices.IndexFunc(s.wants, w.sameChart); i >= 0 {
		if strings.TrimSuffix(s.wants[i].Repository, "/") != strings.TrimSuffix(w.Repository, "/") {
			return w.Refused(failure.New(failure.ArtifactInvalid, "the chart wants the same version from another repository, too; take it from one of both"))
		}
		return nil
	}
	if len(s.wants) == Max {
		return TooMany()
	}
	s.wants = append(s.wants, w)
	return nil
}

// sameChart tells whether both are one chart under two aliases.
func (w Want) sameChart(other Want) bool {
	return w.Within == other.Within && w.Name == other.Name && w.Version == other.Version
}

// want is the dependency with that index, in whichever version.
func (r requirements) want(index int, within string) Want {
	declared := r.declared[index]
	return Want{
		Within: within, by: r.chart, field: fieldOf(r.file, index),
		Name: declared.Name, Version: declared.Version, Repository: declared.Repository,
	}
}

// version is the one that the dependency has to be fetched in.
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
	if !r.synced {
		return "", failure.New(failure.ArtifactInvalid, "%s isn't up to date with %s: it was made for other dependencies; "+updateLock, r.lockFile, r.file, r.lockFile)
	}
	locked := r.locked(declared)
	if _, err := semver.NewVersion(locked); err != nil {
		return "", failure.New(failure.ArtifactInvalid, "%s has no version for it that %s allows; "+updateLock, r.lockFile, r.file, r.lockFile)
	}
	return locked, nil
}
