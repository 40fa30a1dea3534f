// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

const (
	// settling is how old a file's time has to be before it tells versions apart:
	// file systems with coarse clocks give two writes one after the other the same time.
	settling = 2 * time.Second
	// readAttempts is how often a path that changes while it is read is read again.
	readAttempts = 3
)

// local is the origin of charts in a directory tree of this machine, the artifact root.
//
// All paths are resolved by [os.Root]: ".." and symbolic links may lead anywhere
// inside the root, and nowhere else. Links are followed since volumes of
// ConfigMaps consist of them: there each file is a link into "..data", itself a
// link to a directory that is swapped when the content changes. The root is opened
// anew each time, so that it may be such a link, too.
type local struct {
	dir    string // absolute
	limits artifact.Limits
	clock  clock.Clock

	// known is what each path that was asked for came to; the watch covers these.
	known   *lru.Cache[spot, looked]
	flights singleflight.Group
	// asked tells the watch that known has a path or state that it hasn't seen.
	asked chan struct{}
	// watching allows one watch at a time: asked has room for one.
	watching sync.Mutex
}

// spot is a path of the artifact root, and what is expected there.
type spot struct {
	path string
	kind artifact.Kind
}

// looked is what a path came to when it was in a certain state.
type looked struct {
	state   string
	settled bool // an equal state means equal content
	digest  string
	err     error
}

func newLocal(dir string, limits artifact.Limits, clock clock.Clock) (*local, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &local{
		dir: dir, limits: limits, clock: clock,
		known: lru.New[spot](remembered, lru.One[looked]),
		asked: make(chan struct{}, 1),
	}, root.Close()
}

func (l *local) resolve(_ context.Context, ref Reference) (string, error) {
	at := spot{path: path.Clean(ref.Chart.Path), kind: ref.Kind}
	if path.IsAbs(ref.Chart.Path) || !fs.ValidPath(at.path) || strings.ContainsRune(at.path, 0) {
		return "", failure.New(failure.ArtifactRefused, "the path has to be relative and to stay in the artifact root")
	}
	now := l.look(at)
	if before, known := l.known.Get(at); known && before.settled && before.state == now.state {
		return before.digest, before.err
	}
	result, _, _ := l.flights.Do(at.path+at.kind.Suffix()+" "+now.state, func() (any, error) {
		return l.read(at), nil
	})
	found := result.(looked)
	return found.digest, found.err
}

// look is a shot of the path's state, which is cheap: no file but .helmignore is read.
func (l *local) look(at spot) shot {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return shot{err: rootError(err)}.seal()
	}
	defer release(root)
	return shoot(root, at, l.limits)
}

// read reads the path and remembers what it came to.
func (l *local) read(at spot) looked {
	now := l.clock.Now()
	got, state, err := l.load(at)
	found := looked{state: state.state, settled: now.Sub(state.newest) > settling && !passing(err), err: err}
	if err == nil {
		found.digest = got.Digest()
	}
	l.known.Put(at, found)
	select {
	case l.asked <- struct{}{}:
	default: // it is told already
	}
	return found
}

func (l *local) fetch(_ context.Context, ref Reference, _ string) (artifact.Content, error) {
	got, _, err := l.load(spot{path: path.Clean(ref.Chart.Path), kind: ref.Kind})
	return got, err
}

// load reads the path's content, all of it in one state.
func (l *local) load(at spot) (artifact.Content, shot, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		err = rootError(err)
		return artifact.Content{}, shot{err: err}.seal(), err
	}
	defer release(root)
	before := shoot(root, at, l.limits)
	for range readAttempts {
		if before.err != nil {
			return artifact.Content{}, before, before.err
		}
		got, err := before.read(root, l.limits)
		after := shoot(root, at, l.limits)
		if after.state == before.state {
			return got, after, err
		}
		before = after
	}
	return artifact.Content{}, before, changed()
}

// read reads the files of the shot.
func (s shot) read(root *os.Root, limits artifact.Limits) (artifact.Content, error) {
	if !s.directory {
		archive, err := readFile(root, s.files[0].name, limits.ArchiveBytes)
		return artifact.Content{Archive: archive}, err
	}
	files, err := s.readDirectory(root, limits)
	if err == nil && !s.kind.Verbatim() {
		files, err = dependency.WithBeside(files, s.name, limits, func(name string) ([]render.File, error) { return s.readBeside(root, name, limits) })
	}
	return artifact.Content{Files: files}, err
}

// readBeside reads the files of a directory that the chart depends on.
func (s shot) readBeside(root *os.Root, name string, limits artifact.Limits) ([]render.File, error) {
	other, known := s.beside[name]
	switch {
	case !known:
		return nil, changed() // it wasn't looked at, so it wasn't named then
	case other.err != nil:
		return nil, other.err
	case !other.directory:
		return nil, dependency.NoDirectory(name)
	}
	return other.readDirectory(root, limits)
}

// readDirectory reads the files of the directory itself.
func (s shot) readDirectory(root *os.Root, limits artifact.Limits) ([]render.File, error) {
	files := make([]render.File, 0, len(s.files))
	total := limits.TotalBytes
	for _, file := range s.files {
		data, err := readFile(root, path.Join(s.name, file.name), limits.FileBytes)
		if err != nil {
			return nil, err
		}
		if total -= int64(len(data)); total < 0 {
			return nil, failure.TooLarge("the directory's content", limits.TotalBytes)
		}
		files = append(files, render.File{Name: file.name, Data: artifact.TrimBOM(data)})
	}
	return files, nil
}

// passing tells whether the error may go away without a change of the path's state.
func passing(err error) bool {
	var known *failure.Error
	return errors.As(err, &known) && (known.Reason == failure.SourceUnavailable || known.Reason == failure.ArtifactChanged)
}
