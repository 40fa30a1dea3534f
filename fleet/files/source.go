// SPDX-License-Identifier: Apache-2.0

// Package files finds clusters by kubeconfig files, such as those that kind writes or that are
// mounted from a Secret.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
)

// Name is the name of the source.
const Name = "files"

// Options of a Source.
type Options struct {
	// Name of the source, by which a Provider tells it from others. Defaults to the constant Name.
	Name string
	// Paths are kubeconfig files, and directories whose files are. Names that begin with a dot
	// are left out. At least one of Paths and TrustedPaths is needed.
	Paths []string
	// TrustedPaths are as Paths, for files that nobody but administrators write. Nothing in them is checked: exec plugins
	// run, proxies are used, and the files that they name are read.
	TrustedPaths []string
	// Contexts are patterns as of [path.Match]; a context that one of them matches is a cluster.
	// Empty means all.
	Contexts []string
	// Interval is the time between two looks at the files without an event. Events come from the directories of the
	// files. File systems on a network have none, nor has the target of a symbolic link elsewhere. Defaults to 1m.
	Interval time.Duration
	// Labels of each cluster.
	Labels map[string]string
}

// Source reports the contexts of kubeconfig files, by the name of the context. If two files have a context of
// the same name, the first one counts, as with kubectl. The other is reported without credentials, as
// "<file>+<context>", and its State says so. While a file can't be read, its clusters
// stay as they were last read. They are gone when the file or the context is.
type Source struct {
	options Options
	sink    fleet.Sink
	looks   chan struct{}

	// The results of the last look belong to run.
	last    map[multicluster.ClusterName]found
	known   map[string]map[string]content // contexts by file
	failing map[string]string             // errors by path, as they were logged
}

// New returns a Source, or why a pattern isn't one.
func New(o Options) (*Source, error) {
	if len(o.Paths) == 0 && len(o.TrustedPaths) == 0 {
		return nil, errors.New("no kubeconfig files are named")
	}
	for _, pattern := range o.Contexts {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q of contexts: %w", pattern, err)
		}
	}
	o.Name = cmp.Or(o.Name, Name)
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	return &Source{options: o, looks: make(chan struct{}, 1), failing: map[string]string{}}, nil
}

// Name implements fleet.Source.
func (s *Source) Name() string { return s.options.Name }

// SetupWithManager implements fleet.Source.
func (s *Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	s.sink = sink
	return mgr.Add(manager.RunnableFunc(s.run))
}

// Refresh implements fleet.Source: all files are looked at now.
func (s *Source) Refresh(multicluster.ClusterName) {
	select {
	case s.looks <- struct{}{}:
	default:
	}
}

func (s *Source) run(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName(s.options.Name)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching kubeconfig files: %w", err)
	}
	defer func() { _ = watcher.Close() }()
	for {
		s.watch(logger, watcher) // before the look, so that no change is missed
		s.look(logger)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.options.Interval):
		case <-s.looks:
		case <-watcher.Events:
			drain(ctx, watcher)
		case <-watcher.Errors: //nolint:errcheck // events were lost: the next look reads all files
			drain(ctx, watcher)
		}
	}
}

// look reports what is there now.
func (s *Source) look(logger logr.Logger) {
	now := s.read(logger)
	for name := range s.last {
		if _, there := now[name]; !there {
			s.sink.Remove(name)
		}
	}
	for name, f := range now {
		if _, known := s.last[name]; string(name) != f.context && !known {
			logger.Info("Left out a context whose name another file has, too", "context", f.context, "file", f.file)
		}
		s.sink.Set(name, f.Member)
	}
	s.last = now
	s.sink.Synced()
}

// matches reports whether a context is a cluster.
func (s *Source) matches(context string) bool {
	for _, pattern := range s.options.Contexts {
		if ok, _ := path.Match(pattern, context); ok {
			return true
		}
	}
	return len(s.options.Contexts) == 0
}

// watch adds the directories whose events tell of a change: the named ones, and those that a named path is in. A
// directory that isn't there is looked for the next time, of which its parent tells: so that one is watched first, or a directory that
// is made in between would be missed. The watch of a directory ends with it.
func (s *Source) watch(log logr.Logger, watcher *fsnotify.Watcher) {
	watched := watcher.WatchList()
	for _, named := range slices.Concat(s.options.Paths, s.options.TrustedPaths) {
		for _, directory := range []string{filepath.Dir(named), filepath.Clean(named)} {
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
		case <-watcher.Errors: //nolint:errcheck // the look that follows reads all files
		}
	}
}
