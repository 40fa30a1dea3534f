// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// watch adds the directories whose events tell of a change: the named ones, and those that a named path is in. A
// directory that isn't there is looked for the next time. The watch of a directory ends with it.
func (s *Source) watch(log logr.Logger, watcher *fsnotify.Watcher) {
	watched := watcher.WatchList()
	for _, named := range slices.Concat(s.options.Paths, s.options.TrustedPaths) {
		for _, directory := range []string{filepath.Clean(named), filepath.Dir(named)} {
			if slices.Contains(watched, directory) || !isDirectory(directory) {
				continue
			}
			if err := watcher.Add(directory); err != nil {
				log.Error(err, "Could not watch a directory of kubeconfig files; it is looked at from time to time", "path", directory)
			}
		}
	}
}

// settle is how long further events are awaited: a file is often written in several steps.
const settle = 50 * time.Millisecond

// drain takes the events that belong to one that came.
func drain(ctx context.Context, watcher *fsnotify.Watcher) {
	for over := time.After(settle); ; {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-watcher.Events:
		case <-watcher.Errors:
		}
	}
}
