// SPDX-License-Identifier: Apache-2.0

// Package store keeps fetched content in a directory, so that a restart, or a source that is down,
// takes nothing away.
//
// Content is kept by its digest and its scope: the address it came from, and the
// credentials that were shown there. So nobody gets content by knowing its digest. The
// directory is all there is, and replicas may share it. A file is written under another
// name and renamed. Content that is read is compared with its digest. A file's time says when it
// was used last. It is a cache: when it fails, content is downloaded again.
package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

const (
	// DefaultBytes is how much is kept, unless Options say otherwise.
	DefaultBytes = 1 << 30 // bytes
	// layout is the directory's version: another layout gets another one.
	layout = "v2"
	// touchEvery saves writes: that often a file's time says that it is in use.
	touchEvery = time.Minute
	// lookEvery is how often a write looks at what the directory has: other replicas write, too, and people delete.
	lookEvery = time.Minute
)

// Options of New.
type Options struct {
	// Directory to keep content in. It is made if it is missing. It is for one provider
	// instance; the instance's replicas may share it.
	Directory string
	// Bytes is how much is kept at most. Defaults to [DefaultBytes].
	Bytes int64
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// Log gets a line when the directory can't be used, and one when it can again.
	Log logr.Logger
}

// Store is a directory of content. Its methods may be called concurrently, and return no
// errors: a caller does without what can't be kept. A nil Store keeps nothing.
type Store struct {
	directory string
	bytes     int64
	clock     clock.PassiveClock
	log       logr.Logger

	mu     sync.Mutex // of writes
	failed bool
	// looked is when the directory was looked at. Taken and count are the bytes and files that it had, with those written since.
	looked time.Time
	taken  int64
	count  int
}

// New returns the store in a directory.
func New(options Options) *Store {
	if options.Bytes <= 0 {
		options.Bytes = DefaultBytes
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	s := &Store{
		directory: filepath.Join(options.Directory, layout), bytes: options.Bytes,
		clock: options.Clock, log: options.Log.WithValues("directory", options.Directory),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(errors.Join(os.MkdirAll(s.directory, 0o700), s.makeRoom(0, s.bytes)))
	return s
}

// Get returns the content with the digest, if it was kept for the scope.
func (s *Store) Get(scope, digest string) ([]byte, bool) {
	if s == nil || scope == "" {
		return nil, false
	}
	path := s.path(scope, digest)
	data, err := os.ReadFile(path)
	if err == nil && artifact.DigestOf(data) != digest {
		corruptions.Inc()
		s.log.Info("A file of the cache was damaged; it is dropped, and will be fetched again", "digest", digest)
		err = errors.Join(fs.ErrNotExist, os.RemoveAll(path))
	}
	if err != nil {
		lookups.WithLabelValues("miss").Inc()
		return nil, false
	}
	lookups.WithLabelValues("hit").Inc()
	s.touch(path)
	return data, true
}

// touch notes that a file is used.
func (s *Store) touch(path string) {
	if info, err := os.Stat(path); err == nil && s.clock.Now().Sub(info.ModTime()).Abs() > touchEvery {
		_ = os.Chtimes(path, s.clock.Now(), s.clock.Now()) // on a read-only disk its age doesn't matter
	}
}

// Put keeps content, which has to have the digest, for the scope.
func (s *Store) Put(scope, digest string, data []byte) {
	if s == nil || scope == "" || int64(len(data)) > s.bytes {
		return
	}
	path := s.path(scope, digest)
	if kept, err := os.ReadFile(path); err == nil && bytes.Equal(kept, data) {
		s.touch(path)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.write(path, data)
	if err != nil { // the directory was removed, or its disk is full of less than it may have
		err = errors.Join(os.MkdirAll(s.directory, 0o700), s.makeRoom(0, 0), s.write(path, data))
	}
	s.report(err)
}

func (s *Store) write(path string, data []byte) error {
	full := s.taken+int64(len(data)) > s.bytes || s.count >= maxFiles
	if full || s.clock.Now().Sub(s.looked).Abs() > lookEvery {
		if err := s.makeRoom(int64(len(data)), s.bytes); err != nil {
			return err
		}
	}
	unfinished := path + temporary + utilrand.String(8)
	err := writeSynced(unfinished, data)
	if err == nil {
		now := s.clock.Now()
		err = errors.Join(os.Chtimes(unfinished, now, now), os.Rename(unfinished, path))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(unfinished), os.RemoveAll(path)) // a directory may be in its place
	}
	bytesKept.Add(float64(len(data)))
	s.taken += int64(len(data))
	s.count++
	return nil
}

// writeSynced sees to it that after a power failure there is no name without content.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// path returns a file of the directory. It is made of sums only: so no name leads anywhere else.
func (s *Store) path(scope, digest string) string {
	return filepath.Join(s.directory, strings.TrimPrefix(artifact.DigestOf([]byte(digest+"\n"+scope)), "sha256:"))
}
