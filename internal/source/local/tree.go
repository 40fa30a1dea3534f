// SPDX-License-Identifier: Apache-2.0

// Package local reads artifacts from a directory of this machine, the artifact root, and
// looks every few seconds whether they changed.
package local

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

const (
	// LookEvery is the time between two looks at the paths that are in use.
	LookEvery = 5 * time.Second
	// rest is how many times as long as it took to read a path it isn't read again. So large trees
	// don't take all of the processor.
	rest = 9
	// remembered has room for some thousand paths.
	remembered = 2 << 20 // bytes
	ofPath     = 448     // bytes, with what is there
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
// Bound: remembered bytes. They belong to the process, as all namespaces share the root.
// Lost with it: each path is read once more.
type Tree struct {
	dir    string // absolute
	limits artifact.Limits
	clock  clock.Clock
	known  *budget.Cache[spot, seen] // what was asked for
}

// spot is a path of the tree, and what is expected there.
type spot struct {
	path string
	kind artifact.Kind
}

// seen is what a path had when it was read.
type seen struct {
	digest string
	err    error
	again  time.Time // when to read it again
	// changed says that it isn't what it was, and that the watch hasn't told so yet.
	changed bool
}

// differs reports whether the path had something else before.
func (s seen) differs(before seen) bool {
	if s.err != nil && before.err != nil {
		return s.err.Error() != before.err.Error()
	}
	return s.digest != before.digest || (s.err == nil) != (before.err == nil)
}

// New opens the directory, which has to be there.
func New(dir string, limits artifact.Limits, clock clock.Clock, memory *budget.Budget) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	known := budget.NewCache[spot](memory, remembered, func(seen) int64 { return ofPath })
	return &Tree{dir: dir, limits: limits, clock: clock, known: known}, root.Close()
}

// Resolve returns the digest of the content that the path has now, or had a moment ago if it takes long to read.
func (t *Tree) Resolve(written string, kind artifact.Kind) (string, error) {
	if t == nil {
		return "", disabled()
	}
	at := spot{path: path.Clean(written), kind: kind}
	if path.IsAbs(written) || !fs.ValidPath(at.path) || strings.ContainsRune(at.path, 0) {
		return "", failure.New(failure.ArtifactRefused, "the path has to be relative and to stay in the artifact root; correct it")
	}
	is, known := t.known.Get(at)
	if !known || !t.clock.Now().Before(is.again) {
		_, is = t.look(at)
	}
	return is.digest, is.err
}

// Fetch reads the content that the path has now.
func (t *Tree) Fetch(written string, kind artifact.Kind) (artifact.Content, error) {
	if t == nil {
		return artifact.Content{}, disabled()
	}
	got, is := t.look(spot{path: path.Clean(written), kind: kind})
	return got, is.err
}

// Watch calls notify with each path (as it was asked for, cleaned) that was resolved before
// and has changed since, one after the other. It returns when ctx ends.
func (t *Tree) Watch(ctx context.Context, notify func(path string)) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	for {
		begun := t.clock.Now()
		for at := range t.known.All() {
			if _, is := t.look(at); is.changed {
				t.known.Change(budget.Tenant{}, at, func(known *seen) { known.changed = false })
				notify(at.path)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.clock.After(max(LookEvery, rest*t.clock.Since(begun))):
		}
	}
}

func disabled() error {
	return failure.New(failure.SourceDisabled, "this provider has no artifact root; start it with --artifact-root, or use another source")
}

// look reads the path's content, and remembers its digest. Files that change while they are read give a digest
// that no later look finds again.
func (t *Tree) look(at spot) (artifact.Content, seen) {
	begun := t.clock.Now()
	got, err := t.read(at)
	is := seen{err: err}
	if err == nil {
		is.digest = got.Digest()
	}
	is.again = t.clock.Now().Add(rest * t.clock.Since(begun))
	return got, t.known.Change(budget.Tenant{}, at, func(known *seen) {
		is.changed = known.changed || !known.again.IsZero() && is.differs(*known)
		*known = is
	})
}

// read reads the path's content.
func (t *Tree) read(at spot) (got artifact.Content, err error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return got, failure.New(failure.SourceUnavailable, "the artifact root can't be opened: %w; see to it that the provider may read the directory of --artifact-root", cause(err)) // which doesn't tell where that was
	}
	defer closeRead(root)
	return t.content(root, at)
}
