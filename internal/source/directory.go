// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// shot is what the file system says of an artifact's path, without its files' content.
type shot struct {
	name      string
	kind      artifact.Kind
	directory bool
	files     []statted       // sorted by name, relative to the directory; of an archive, the archive itself
	walked    []string        // directories and links met on the way, relative to the root
	newest    time.Time       // of the files
	beside    map[string]shot // directories that a chart may depend on, by path
	err       error           // why it isn't a chart

	state string // changes when any of the above does
}

type statted struct {
	name string
	info fs.FileInfo
}

// seal computes the state.
func (s shot) seal() shot {
	var state strings.Builder
	if s.err != nil {
		fmt.Fprintln(&state, s.err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.beside)) {
		other := s.beside[name]
		fmt.Fprintf(&state, "%q %s\n", name, other.state)
		s.walked = append(append(s.walked, name), other.walked...)
		if other.newest.After(s.newest) {
			s.newest = other.newest
		}
	}
	for _, file := range s.files {
		fmt.Fprintf(&state, "%q %s %d %d %d\n", file.name, file.info.Mode(), file.info.Size(), file.info.ModTime().UnixNano(), inode(file.info))
		if file.info.ModTime().After(s.newest) {
			s.newest = file.info.ModTime()
		}
	}
	sum := sha256.Sum256([]byte(state.String()))
	s.state = hex.EncodeToString(sum[:])
	return s
}

// shoot looks at the path: an archive, or a directory; of a chart, one with a Chart.yaml,
// and the directories that it depends on.
func shoot(root *os.Root, at spot, limits artifact.Limits) shot {
	taken := shootOne(root, at, limits)
	if taken.err == nil && taken.directory && !at.kind.Verbatim() {
		taken.lookBeside(root, limits)
	}
	return taken.seal()
}

// lookBeside looks at the directories that the chart depends on, and those that these
// depend on.
func (s *shot) lookBeside(root *os.Root, limits artifact.Limits) {
	for charts := []shot{*s}; len(charts) > 0; charts = charts[1:] {
		for _, name := range charts[0].dependsOn(root) {
			if _, known := s.beside[name]; known || name == s.name || len(s.beside) == dependency.Max {
				continue
			}
			if s.beside == nil {
				s.beside = map[string]shot{}
			}
			other := shootOne(root, spot{path: name}, limits).seal()
			s.beside[name] = other
			if other.err == nil && other.directory {
				charts = append(charts, other)
			}
		}
	}
}

// dependsOn reads which directories beside it the chart depends on.
func (s shot) dependsOn(root *os.Root) []string {
	var files []render.File
	for _, file := range s.files {
		if file.name != artifact.ChartFile && file.name != dependency.RequirementsFile {
			continue
		}
		if data, err := readFile(root, path.Join(s.name, file.name), dependency.MaxChartFile); err == nil { // else nothing is looked up in it
			files = append(files, render.File{Name: file.name, Data: artifact.TrimBOM(data)})
		}
	}
	return dependency.BesideOf(s.name, files)
}

// shootOne looks at one path.
func shootOne(root *os.Root, at spot, limits artifact.Limits) shot {
	name, taken := at.path, shot{name: at.path, kind: at.kind}
	info, err := root.Stat(name)
	switch {
	case err != nil:
		taken.err = pathError(root, name, err)
	case info.IsDir():
		taken.directory = true
		taken.err = taken.walk(root, limits)
	case !info.Mode().IsRegular():
		taken.err = irregular(name)
	default:
		taken.files = []statted{{name, info}}
		taken.err = at.kind.CheckFile(name)
	}
	return taken
}

// walk finds the files of a directory; those of a chart as Helm would package them.
func (s *shot) walk(root *os.Root, limits artifact.Limits) error {
	rules, err := s.rules(root, limits)
	if err != nil {
		return err
	}
	walk := walk{shot: s, root: root, limits: limits, rules: rules, entries: limits.Entries}
	if err := walk.directory("."); err != nil {
		return err
	}
	slices.SortFunc(s.files, func(a, b statted) int { return strings.Compare(a.name, b.name) })
	if !s.kind.Verbatim() && !slices.ContainsFunc(s.files, func(file statted) bool { return file.name == artifact.ChartFile }) {
		return failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	return nil
}

// rules are those of the chart's .helmignore, and Helm's own.
func (s *shot) rules(root *os.Root, limits artifact.Limits) (*ignore.Rules, error) {
	rules := ignore.Empty()
	if s.kind.Verbatim() {
		return rules, nil
	}
	data, err := readFile(root, path.Join(s.name, ignore.HelmIgnore), limits.FileBytes)
	var missing *failure.Error
	switch {
	case errors.As(err, &missing) && missing.Wait:
	case err != nil:
		return nil, err
	default:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, failure.New(failure.ArtifactInvalid, "its .helmignore: %w", err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// gitDirectory isn't part of files, as it isn't of what `git archive` packs of them.
const gitDirectory = ".git"

// walk is one walk through a directory.
type walk struct {
	*shot
	root    *os.Root
	limits  artifact.Limits
	rules   *ignore.Rules
	entries int // left to look at
}

// directory walks through one directory. Cycles of links end at the limits.
func (w *walk) directory(name string) error {
	full := path.Join(w.name, name)
	w.walked = append(w.walked, full)
	entries, err := w.list(full)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		// Kubernetes keeps names that start with two dots to itself: they hold
		// what the links in a volume point to, which would be in the chart twice.
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		if err := w.entry(path.Join(name, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

// list reads a directory, but no more of it than the limits allow.
func (w *walk) list(full string) ([]fs.DirEntry, error) {
	directory, err := w.root.Open(full)
	if err != nil {
		return nil, pathError(w.root, full, err)
	}
	defer release(directory)
	entries, err := directory.ReadDir(w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, pathError(w.root, full, err)
	}
	if w.entries -= len(entries); w.entries < 0 {
		return nil, failure.New(failure.ArtifactTooLarge, "the directory has more than %d entries", w.limits.Entries)
	}
	// In order, so that of several errors it is always the same that is told.
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (w *walk) entry(name string, entry fs.DirEntry) error {
	full := path.Join(w.name, name)
	if w.kind.Verbatim() && entry.Name() == gitDirectory {
		return nil
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		w.walked = append(w.walked, full)
	}
	info, err := w.root.Stat(full)
	if err != nil {
		return pathError(w.root, full, err)
	}
	if w.rules.Ignore(name, info) {
		return nil
	}
	if err := artifact.CheckName(name, w.limits); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return w.directory(name)
	case !info.Mode().IsRegular():
		return irregular(full)
	case info.Size() > w.limits.FileBytes:
		return failure.TooLarge(failure.Quote(full), w.limits.FileBytes)
	}
	w.files = append(w.files, statted{name, info})
	return nil
}
