// SPDX-License-Identifier: Apache-2.0

// Package local reads artifacts from a directory of this machine, the artifact root, and
// looks every few seconds whether they changed.
package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
)

const (
	// LookEvery is the time between two looks at the paths that are in use.
	LookEvery = 5 * time.Second
	// settling is how old a file's time has to be before it tells versions apart:
	// file systems with coarse clocks give two writes one after the other the same time.
	settling = 2 * time.Second
	// remembered is how many paths are.
	remembered = 4096
	// readAttempts is how often a path that changes while it is read is read again.
	readAttempts = 3
)

// Tree is the artifact root.
//
// All paths are resolved by [os.Root]: ".." and symbolic links may lead anywhere
// inside the root, and nowhere else. Links are followed since volumes of
// ConfigMaps consist of them. There each file is a link into "..data", itself a
// link to a directory that is swapped when the content changes. The root is opened
// again each time, so that it may be such a link, too.
//
// A nil Tree is that of a manager without an artifact root.
//
// Key: the path and the kind of its content.
// Bound: remembered paths.
// Lost with it: each path is read once more.
type Tree struct {
	dir    string // absolute
	limits artifact.Limits
	clock  clock.Clock
	known  *lru.Cache[spot, seen] // what was asked for
}

// spot is a path of the tree, and what is expected there.
type spot struct {
	path string
	kind artifact.Kind
}

// seen is what a path was when it was looked at.
type seen struct {
	state  string    // changes when a file does
	newest time.Time // of all files

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
	return &Tree{dir: dir, limits: limits, clock: clock, known: lru.New[spot](remembered, lru.One[seen])}, root.Close()
}

// Resolve returns the digest of the content that the path has now. While no file changed,
// none is read.
func (t *Tree) Resolve(written string, kind artifact.Kind) (string, error) {
	if t == nil {
		return "", disabled()
	}
	at := spot{path: path.Clean(written), kind: kind}
	if path.IsAbs(written) || !fs.ValidPath(at.path) || strings.ContainsRune(at.path, 0) {
		return "", failure.New(failure.ArtifactRefused, "the path has to be relative and to stay in the artifact root; correct it")
	}
	if before, known := t.known.Get(at); known && before.settled && before.state == t.look(at).state {
		return before.digest, before.err
	}
	now := t.clock.Now()
	got, is, err := t.load(at)
	is.settled, is.err = now.Sub(is.newest) > settling, err
	if err == nil {
		is.digest = got.Digest()
	} else if reason := failure.Of(err).Reason; reason == failure.SourceUnavailable || reason == failure.ArtifactChanged {
		is.settled = false // it may go away without a change of the path's state
	}
	t.known.Put(at, is)
	return is.digest, err
}

// Fetch reads the content that the path has now.
func (t *Tree) Fetch(written string, kind artifact.Kind) (artifact.Content, error) {
	if t == nil {
		return artifact.Content{}, disabled()
	}
	got, _, err := t.load(spot{path: path.Clean(written), kind: kind})
	return got, err
}

// Watch calls notify with each path (as it was asked for, cleaned) that was resolved before
// and has changed since, one after the other. It returns when ctx ends.
func (t *Tree) Watch(ctx context.Context, notify func(path string)) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	told := map[spot]string{}
	for {
		now := map[spot]string{}
		for at, resolved := range t.known.All() {
			now[at] = t.look(at).state
			if now[at] != cmp.Or(told[at], resolved.state) {
				notify(at.path)
			}
		}
		told = now
		select {
		case <-ctx.Done():
			return nil
		case <-t.clock.After(LookEvery):
		}
	}
}

func disabled() error {
	return failure.New(failure.SourceDisabled, "this provider has no artifact root; start it with --artifact-root, or use another source")
}

// load reads the path's content, all of it in one state.
func (t *Tree) load(at spot) (artifact.Content, seen, error) {
	before := t.look(at)
	for range readAttempts {
		got, err := t.read(at)
		after := t.look(at)
		if after.state == before.state {
			return got, after, err
		}
		before = after
	}
	return artifact.Content{}, before, failure.Changed()
}

// look returns the state of a path, which is cheap: no file but .helmignore is read.
func (t *Tree) look(at spot) (is seen) {
	hash := sha256.New()
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		is.state = err.Error()
		return is
	}
	defer closeRead(root)
	found, err := t.walk(root, at)
	fmt.Fprintln(hash, err)
	for _, file := range found.files {
		var inode uint64 // which tells a file from another that took its place
		if stat, ok := file.info.Sys().(*syscall.Stat_t); ok {
			inode = stat.Ino
		}
		fmt.Fprintf(hash, "%q %s %d %d %d\n", file.name, file.info.Mode(), file.info.Size(), file.info.ModTime().UnixNano(), inode)
		if file.info.ModTime().After(is.newest) {
			is.newest = file.info.ModTime()
		}
	}
	is.state = hex.EncodeToString(hash.Sum(nil))
	return is
}

// read reads the path's content.
func (t *Tree) read(at spot) (got artifact.Content, err error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return got, failure.New(failure.SourceUnavailable, "the artifact root can't be opened: %w; see to it that the provider may read the directory of --artifact-root", cause(err)) // which doesn't tell where that was
	}
	defer closeRead(root)
	found, err := t.walk(root, at)
	switch {
	case err != nil:
	case found.directory:
		got.Files, err = found.read()
	default:
		got.Archive, err = readFile(root, at.path, t.limits.ArchiveBytes)
	}
	return got, err
}
