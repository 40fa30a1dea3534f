// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// walk finds the files of a directory; those of a chart as Helm would package them.
func (s *snapshot) walk(root *os.Root, limits artifact.Limits) error {
	rules, err := s.rules(root)
	if err != nil {
		return err
	}
	walk := walk{snapshot: s, root: root, limits: limits, rules: rules, entries: limits.Entries}
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
func (s *snapshot) rules(root *os.Root) (*ignore.Rules, error) {
	rules := ignore.Empty()
	if s.kind.Verbatim() {
		return rules, nil
	}
	data, err := readFile(root, path.Join(s.name, ignore.HelmIgnore), artifact.MaxIgnoreFile)
	var missing *failure.Error
	switch {
	case errors.As(err, &missing) && missing.Wait:
	case err != nil:
		return nil, err
	default:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, failure.New(failure.ArtifactInvalid, "its .helmignore: %w; correct it", err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

// gitDirectory isn't part of files, as it isn't of what `git archive` packs of them.
const gitDirectory = ".git"

// walk is one walk through a directory.
type walk struct {
	*snapshot
	root    *os.Root
	limits  artifact.Limits
	rules   *ignore.Rules
	entries int // left to look at
}

// directory walks through one directory. Cycles of links end at the limits.
func (w *walk) directory(name string) error {
	full := path.Join(w.name, name)
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
	defer closeRead(directory)
	entries, err := directory.ReadDir(w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, pathError(w.root, full, err)
	}
	if w.entries -= len(entries); w.entries < 0 {
		return nil, failure.New(failure.ArtifactTooLarge, "the directory has more than %d entries; take out what isn't needed", w.limits.Entries)
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
	info, err := w.root.Stat(full)
	if err != nil {
		return pathError(w.root, full, err)
	}
	if w.rules.Ignore(name, info) {
		return nil
	}
	if err := artifact.CheckName(name); err != nil {
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
