// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"os"
	"path"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
)

// load reads the path's content, all of it in one state.
func (t *Tree) load(at spot) (artifact.Content, shot, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		err = rootError(err)
		return artifact.Content{}, shot{err: err}.seal(), err
	}
	defer closeRead(root)
	before := shoot(root, at, t.limits)
	for range readAttempts {
		if before.err != nil {
			return artifact.Content{}, before, before.err
		}
		got, err := before.read(root, t.limits)
		after := shoot(root, at, t.limits)
		if after.state == before.state {
			return got, after, err
		}
		before = after
	}
	return artifact.Content{}, before, failure.Changed()
}

// read reads the files of the shot.
func (s shot) read(root *os.Root, limits artifact.Limits) (artifact.Content, error) {
	if !s.directory {
		archive, err := readFile(root, s.files[0].name, limits.ArchiveBytes)
		return artifact.Content{Archive: archive}, err
	}
	files, err := s.readDirectory(root, limits)
	if err == nil && !s.kind.Verbatim() {
		files, err = dependency.WithBeside(files, s.name, limits, func(name string) ([]artifact.File, error) { return s.readBeside(root, name, limits) })
	}
	return artifact.Content{Files: files}, err
}

// readBeside reads the files of a directory that the chart depends on.
func (s shot) readBeside(root *os.Root, name string, limits artifact.Limits) ([]artifact.File, error) {
	other, known := s.beside[name]
	switch {
	case !known:
		return nil, failure.Changed() // it wasn't looked at, so it wasn't named then
	case other.err != nil:
		return nil, other.err
	case !other.directory:
		return nil, dependency.NoDirectory(name)
	}
	return other.readDirectory(root, limits)
}

// readDirectory reads the files of the directory itself.
func (s shot) readDirectory(root *os.Root, limits artifact.Limits) ([]artifact.File, error) {
	files := make([]artifact.File, 0, len(s.files))
	total := limits.TotalBytes
	for _, file := range s.files {
		data, err := readFile(root, path.Join(s.name, file.name), limits.FileBytes)
		if err != nil {
			return nil, err
		}
		if total -= int64(len(data)); total < 0 {
			return nil, failure.TooLarge("the directory's content", limits.TotalBytes)
		}
		files = append(files, artifact.File{Name: file.name, Data: artifact.TrimBOM(data)})
	}
	return files, nil
}

// passing tells whether the error may go away without a change of the path's state.
func passing(err error) bool {
	var known *failure.Error
	return errors.As(err, &known) && (known.Reason == failure.SourceUnavailable || known.Reason == failure.ArtifactChanged)
}
