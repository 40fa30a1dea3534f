// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// Limits of the kustomizations that one build reads: more than anyone has.
const (
	maxKustomizations = 1000
	maxBaseDepth      = 32
)

// survey looks through the kustomizations that a build will read, before kustomize
// does. Kustomize would follow addresses, and what it says when it can't is hard to
// understand; the survey refuses what isn't read here, and names file and field.
type survey struct {
	files       map[string][]byte
	directories map[string]bool
	// efforts of building each kustomization, by its file: kustomize builds a base
	// again for each way that leads to it.
	efforts map[string]effort
	most    effort
	// labels of texts that may be long or secret, to be shown in their place.
	labels map[string]string
	// schema says that one brings a schema of its own.
	schema bool
}

// effort is what it takes to build a kustomization.
type effort struct{ kustomizations, objects int }

func newSurvey(files []artifact.File, maxObjects int) *survey {
	s := &survey{
		files: map[string][]byte{}, directories: map[string]bool{".": true}, labels: map[string]string{},
		efforts: map[string]effort{}, most: effort{maxKustomizations, maxObjects},
	}
	for _, file := range files {
		s.files[file.Name] = file.Data
		for dir := path.Dir(file.Name); !s.directories[dir]; dir = path.Dir(dir) {
			s.directories[dir] = true
		}
	}
	return s
}

// of surveys the kustomization in a directory of the artifact, and returns its file.
func (s *survey) of(directory string) (file string, err error) {
	if directory == ".." || strings.HasPrefix(directory, "../") || path.IsAbs(directory) {
		return "", failf(ReasonKustomizationInvalid, "directory %q leads out of the artifact; correct kustomization.directory", directory)
	}
	file, err = s.fileIn(directory)
	if err != nil {
		return "", err
	}
	if file == "" {
		return "", failf(ReasonKustomizationInvalid, "%s has no kustomization.yaml%s", place(directory),
			elsewhere(s.list(), "kustomization.directory", isKustomization))
	}
	_, err = s.visit(file, nil)
	return file, err
}

// visit surveys one kustomization, and those that it is made of.
func (s *survey) visit(file string, above []string) (effort, error) {
	if slices.Contains(above, file) {
		return effort{}, failf(ReasonKustomizationInvalid, "the kustomizations are made of each other, take one of them out: %s", strings.Join(append(above, file), " -> "))
	}
	if len(above) == maxBaseDepth {
		return effort{}, failf(ReasonKustomizationInvalid, "%s: bases are nested deeper than %d; take some out", above[0], maxBaseDepth)
	}
	if known, ok := s.efforts[file]; ok {
		return known, nil
	}
	k, err := s.read(file)
	if err != nil {
		return effort{}, err
	}
	all := effort{kustomizations: 1}
	for _, ref := range references(k) {
		base, err := s.check(file, ref)
		if err != nil {
			return effort{}, err
		}
		part := effort{}
		if base != "" {
			if part, err = s.visit(base, append(above, file)); err != nil {
				return effort{}, err
			}
		} else if ref.objects {
			part.objects = len(splitManifests(string(s.files[path.Join(path.Dir(file), ref.to)])))
		}
		all.kustomizations += part.kustomizations
		all.objects += part.objects
		switch {
		case all.kustomizations > s.most.kustomizations:
			return effort{}, failf(ReasonKustomizationInvalid, "%s: it takes more than %d kustomizations to build it; split it", file, s.most.kustomizations)
		case all.objects > s.most.objects:
			return effort{}, failf(ReasonOutputTooLarge, "%s: it reads more than %d objects; split it", file, s.most.objects)
		}
	}
	s.efforts[file] = all
	return all, nil
}

// read reads one kustomization, and refuses what no build is needed for to see.
func (s *survey) read(file string) (*types.Kustomization, error) {
	invalid := func(err error) error { return failf(ReasonKustomizationInvalid, "%s: %w", file, err) }
	if err := checkSingle(s.files[file]); err != nil {
		return nil, invalid(err)
	}
	k := &types.Kustomization{}
	if err := k.Unmarshal(s.files[file]); err != nil {
		return nil, invalid(err)
	}
	if err := k.CheckEmpty(); err != nil {
		return nil, invalid(errors.New("it is empty"))
	}
	if k.Kind != "" {
		if problems := k.EnforceFields(); len(problems) > 0 {
			return nil, invalid(errors.New(strings.Join(problems, ", ")))
		}
	}
	if field := chartsOf(k); field != "" {
		return nil, invalid(fmt.Errorf("%s: %s", field, noCharts))
	}
	s.schema = s.schema || len(k.OpenAPI) > 0
	s.note(file, k)
	return k, nil
}

// check looks at what one field refers to. If that is a kustomization, it returns its file.
func (s *survey) check(file string, ref reference) (base string, err error) {
	refuse := func(format string, args ...any) error {
		return failf(ReasonKustomizationInvalid, "%s: %s: %w", file, ref.field, fmt.Errorf(format, args...))
	}
	if isAddress(ref.to) {
		return "", refuse("%s is an address, and nothing is read from outside of the artifact; put it into the artifact", shownAddress(ref.to))
	}
	if ref.inline && (strings.Contains(ref.to, "\n") || strings.HasPrefix(ref.to, "{")) {
		return "", s.checkContent(ref, []byte(ref.to), refuse)
	}
	to := path.Join(path.Dir(file), ref.to)
	switch {
	case ref.to == "":
		return "", refuse("it is empty")
	case path.IsAbs(ref.to):
		return "", refuse("%q is absolute; paths are relative to the kustomization", ref.to)
	case to == ".." || strings.HasPrefix(to, "../"):
		return "", refuse("%q leads out of the artifact", ref.to)
	}
	if _, isFile := s.files[to]; isFile {
		return "", s.checkFile(file, to, ref, refuse)
	}
	switch {
	case !s.directories[to] && ref.inline && ref.base == never:
		return "", nil // a text in one line
	case !s.directories[to]:
		return "", refuse("there is no %q in the artifact", to)
	case ref.base == never:
		return "", refuse("%q is a directory, not a file", ref.to)
	}
	if base, err = s.fileIn(to); err != nil {
		return "", refuse("%w", err)
	}
	if base == "" {
		return "", refuse("directory %q has no kustomization.yaml", to)
	}
	return base, nil
}

// checkFile looks at a file that a kustomization refers to.
func (s *survey) checkFile(file, to string, ref reference, refuse func(string, ...any) error) error {
	from := path.Dir(file)
	switch {
	case ref.base == always:
		return refuse("%q is a file, not a directory", ref.to)
	case !within(to, from):
		return refuse("%q is a file outside of %s, and kustomize reads none from there; give it a kustomization.yaml, and name its directory in resources", ref.to, place(from))
	case ref.base == sometimes && isKustomization(to):
		return refuse("%q is a kustomization's file; name its directory", ref.to)
	}
	return s.checkContent(ref, s.files[to], refuse)
}

// checkContent looks at what kustomize will read in a file, or in the field itself.
func (s *survey) checkContent(ref reference, data []byte, refuse func(string, ...any) error) error {
	if ref.yaml {
		if err := checkSingles(data); err != nil {
			return refuse("%w", err)
		}
	}
	return s.checkPlugins(ref, data, refuse)
}

// fileIn finds the kustomization's file in a directory, "" if there is none.
func (s *survey) fileIn(directory string) (file string, err error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		candidate := path.Join(directory, name)
		if _, found := s.files[candidate]; !found {
			continue
		}
		if file != "" {
			return "", failf(ReasonKustomizationInvalid, "%s and %s are in one directory; keep one of them", file, candidate)
		}
		file = candidate
	}
	return file, nil
}

// list is the artifact's files without their content.
func (s *survey) list() []artifact.File {
	list := make([]artifact.File, 0, len(s.files))
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		list = append(list, artifact.File{Name: name})
	}
	return list
}

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}
