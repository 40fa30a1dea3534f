// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// events are those of the directories that the files are in.
type events struct{ watcher *fsnotify.Watcher }

func newEvents() (*events, error) {
	watcher, err := fsnotify.NewWatcher()
	return &events{watcher}, err
}

// directories returns the directories whose events tell of a change: the named ones, and those that a named path is in.
func (s *Source) directories() []string {
	var all []string
	for _, named := range slices.Concat(s.options.Paths, s.options.TrustedPaths) {
		all = append(all, filepath.Clean(named), filepath.Dir(named))
	}
	return all
}

// watch adds directories that aren't watched yet. A directory that isn't there is looked for the next time. The watch of a
// directory ends with it.
func (e *events) watch(ctx context.Context, directories []string) {
	watched := e.watcher.WatchList()
	for _, directory := range directories {
		if slices.Contains(watched, directory) || !isDirectory(directory) {
			continue
		}
		if err := e.watcher.Add(directory); err != nil {
			log.FromContext(ctx).Error(err, "Could not watch a directory of kubeconfig files; it is looked at from time to time", "path", directory)
		}
	}
}

// settle is how long further events are awaited: a file is often written in several steps.
const settle = 50 * time.Millisecond

// drain takes the events that belong to one that came.
func (e *events) drain(ctx context.Context) {
	over := time.After(settle)
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-e.watcher.Events:
		case <-e.watcher.Errors:
		}
	}
}

func (e *events) close() { _ = e.watcher.Close() }
