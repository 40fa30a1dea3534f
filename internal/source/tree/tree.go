// SPDX-License-Identifier: Apache-2.0

// Package tree reads artifacts from a directory tree of this machine, and watches it.
package tree

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

const (
	// settling is how old a file's time has to be before it tells versions apart:
	// file systems with coarse clocks give two writes one after the other the same time.
	settling = 2 * time.Second
	// remembered is how many paths are.
	remembered = 4096
	// readAttempts is how often a path that changes while it is read is read again.
	readAttempts = 3
)

// Tree is a directory tree of this machine, the artifact root.
//
// All paths are resolved by [os.Root]: ".." and symbolic links may lead anywhere
// inside the root, and nowhere else. Links are followed since volumes of
// ConfigMaps consist of them: there each file is a link into "..data", itself a
// link to a directory that is swapped when the content changes. The root is opened
// anew each time, so that it may be such a link, too.
type Tree struct {
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

// spot is a path of the tree, and what is expected there.
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

// New opens the directory, which has to be there.
func New(dir string, limits artifact.Limits, clock clock.Clock) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{
		dir: dir, limits: limits, clock: clock,
		known: lru.New[spot](remembered, lru.One[looked]),
		asked: make(chan struct{}, 1),
	}, root.Close()
}

// Resolve says which content the path has now, by its digest.
func (t *Tree) Resolve(written string, kind artifact.Kind) (string, error) {
	at := spot{path: path.Clean(written), kind: kind}
	if path.IsAbs(written) || !fs.ValidPath(at.path) || strings.ContainsRune(at.path, 0) {
		return "", failure.New(failure.ArtifactRefused, "the path has to be relative and to stay in the artifact root; correct it")
	}
	now := t.look(at)
	if before, known := t.known.Get(at); known && before.settled && before.state == now.state {
		return before.digest, before.err
	}
	result, _, _ := t.flights.Do(at.path+at.kind.Suffix()+" "+now.state, func() (any, error) {
		return t.read(at), nil
	})
	found := result.(looked)
	return found.digest, found.err
}

// look is a shot of the path's state, which is cheap: no file but .helmignore is read.
func (t *Tree) look(at spot) shot {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return shot{err: rootError(err)}.seal()
	}
	defer closeRead(root)
	return shoot(root, at, t.limits)
}

// read reads the path and remembers what it came to.
func (t *Tree) read(at spot) looked {
	now := t.clock.Now()
	got, state, err := t.load(at)
	found := looked{state: state.state, settled: now.Sub(state.newest) > settling && !passing(err), err: err}
	if err == nil {
		found.digest = got.Digest()
	}
	t.known.Put(at, found)
	select {
	case t.asked <- struct{}{}:
	default: // it is told already
	}
	return found
}

// Fetch reads the content that the path has now.
func (t *Tree) Fetch(written string, kind artifact.Kind) (artifact.Content, error) {
	got, _, err := t.load(spot{path: path.Clean(written), kind: kind})
	return got, err
}
