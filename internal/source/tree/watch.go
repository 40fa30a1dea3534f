// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// Gathering is how long events are gathered before the paths are looked at:
	// a copy of a chart makes many.
	Gathering = 250 * time.Millisecond
	// unwatched is the interval of looks at the paths while a directory can't be
	// watched, as when the system's limit of watches is reached.
	unwatched = 30 * time.Second
	// settleRounds bounds the search for directories that appear while others are added.
	settleRounds = 5
)

// Watch calls notify with each path (as it was asked for, cleaned) that was resolved
// before and has changed since: within a second of the change, once for each, and
// never concurrently. It returns when ctx ends. A second watch waits for the first to
// end.
//
// It watches the directories that the paths, and the links in them, lead through.
// Files on network file systems that others change make no events.
func (t *Tree) Watch(ctx context.Context, notify func(path string)) error {
	t.watching.Lock()
	defer t.watching.Unlock()
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the artifact root: %w", err)
	}
	defer closeRead(events)
	w := &watch{tree: t, events: events, notify: notify, directories: map[string]os.FileInfo{}, seen: map[spot]string{}}

	next := t.clock.NewTimer(0)
	defer next.Stop()
	gathered := true
	gather := func() {
		if !gathered {
			gathered = true
			next.Reset(Gathering)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.asked:
			gather()
		case <-events.Events:
			gather()
		case err := <-events.Errors: // an overflow: events were lost, and a look makes up for them
			log.FromContext(ctx).V(1).Info("Events of the artifact root were lost", "error", err)
			gather()
		case <-next.C():
			gathered = false
			if err := w.sync(); err != nil {
				log.FromContext(ctx).Error(err, "Can't watch a directory of the artifact root; it is looked at every 30 seconds instead")
				next.Reset(unwatched)
			}
		}
	}
}

// watch is one watch of the paths that were resolved.
type watch struct {
	tree        *Tree
	events      *fsnotify.Watcher
	notify      func(path string)
	directories map[string]os.FileInfo // that are watched
	seen        map[spot]string        // state of each path that was told last
}

// sync watches the directories that matter now, and then tells which paths have
// changed. In this order, so that a change in between isn't missed.
func (w *watch) sync() error {
	var failed error
	for range settleRounds {
		var added bool
		if added, failed = w.follow(); !added {
			break
		}
	}
	known := w.tree.known.All()
	changed := map[string]bool{}
	for at, resolved := range known {
		before, told := w.seen[at]
		if !told {
			before = resolved.state
		}
		now := w.tree.look(at).state
		w.seen[at] = now
		if now != before {
			changed[at.path] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		w.notify(name)
	}
	maps.DeleteFunc(w.seen, func(at spot, _ string) bool { _, found := known[at]; return !found })
	return failed
}

// follow makes the watched directories those that the known paths lead through.
func (w *watch) follow() (added bool, err error) {
	wanted := w.wanted()
	watched := w.events.WatchList()
	for _, directory := range slices.Sorted(maps.Keys(wanted)) {
		info, statErr := os.Stat(directory)
		if statErr != nil {
			continue // it went away; its parent is watched
		}
		if before := w.directories[directory]; before != nil && os.SameFile(before, info) && slices.Contains(watched, directory) {
			continue
		}
		_ = w.events.Remove(directory) // another directory that had this name; gone by itself, mostly
		if addErr := w.events.Add(directory); addErr != nil {
			if !errors.Is(addErr, os.ErrNotExist) {
				err = addErr
			}
			continue
		}
		w.directories[directory] = info
		added = true
	}
	for directory := range w.directories {
		if !wanted[directory] {
			_ = w.events.Remove(directory) // fails if it is gone, which is as good
			delete(w.directories, directory)
		}
	}
	return added, err
}

// wanted are the directories that the known paths lead through.
func (w *watch) wanted() map[string]bool {
	// The parent of the root, as the root may be a link that is swapped.
	wanted := map[string]bool{filepath.Dir(w.tree.dir): true, w.tree.dir: true}
	root, err := os.OpenRoot(w.tree.dir)
	if err != nil {
		return wanted
	}
	defer closeRead(root)
	for at := range w.tree.known.All() {
		for _, step := range append(shoot(root, at, w.tree.limits).walked, at.path) {
			for _, directory := range trail(root, step) {
				wanted[filepath.Join(w.tree.dir, directory)] = true
			}
		}
	}
	return wanted
}
