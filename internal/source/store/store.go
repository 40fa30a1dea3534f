// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// DefaultBytes is how much is kept, unless Options say otherwise.
	DefaultBytes = 1 << 30 // bytes
	// Busy is how long an archive counts as in use after it was used. Such are never
	// dropped: if they fill the store, others aren't kept.
	Busy = 10 * time.Minute

	// layout is the directory's version: another layout gets another one.
	layout = "v1"
	// touchEvery saves writes: that often it is noted that an archive is in use.
	touchEvery = time.Minute

	ownerOnlyDirectory = 0o700
	ownerOnlyFile      = 0o600
)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Options of New.
type Options struct {
	// Directory to keep archives in. It is made if it is missing. It is for one
	// provider instance; the instance's replicas may share it.
	Directory string
	// Bytes is how much is kept at most. Defaults to [DefaultBytes].
	Bytes int64
	// ArchiveBytes is the size of the largest archive; what is larger was damaged.
	ArchiveBytes int64
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// Log gets a line when the directory can't be used, and one when it can again.
	Log logr.Logger
}

// Store is a directory of archives. Its methods may be called concurrently. None
// returns an error: who can't be served by a cache does without. A nil Store keeps nothing.
type Store struct {
	directory string
	bytes     int64
	largest   int64
	clock     clock.PassiveClock
	health    health

	patience time.Duration
	hanging  atomic.Int32 // operations that were left behind
}

// New makes a store, and clears away what a crash left of it.
func New(options Options) *Store {
	if options.Bytes <= 0 {
		options.Bytes = DefaultBytes
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	s := &Store{
		directory: filepath.Join(options.Directory, layout),
		bytes:     options.Bytes,
		largest:   options.ArchiveBytes,
		clock:     options.Clock,
		health:    health{log: options.Log.WithValues("directory", options.Directory)},
		patience:  patience,
	}
	err := s.change(func(root *os.Root) error { return s.makeRoom(root, 0, withinLimit) })
	if errors.Is(err, errInUse) {
		err = nil // the limit is lower than before; that comes right in a while
	}
	s.health.report(writing, err)
	return s
}

// Get returns the archive with the digest, if it is there.
func (s *Store) Get(digest string) (archive []byte, found bool) {
	if s == nil || !digestForm.MatchString(digest) {
		return nil, false
	}
	archive, err := within(s, false, func(root *os.Root) ([]byte, error) { return s.read(root, digest) })
	found = err == nil
	s.health.reportRead(err)
	countLookup(found)
	return archive, found
}

// Put keeps an archive, which has to have the digest.
func (s *Store) Put(digest string, archive []byte) {
	if s == nil || !digestForm.MatchString(digest) || int64(len(archive)) > min(s.largest, s.bytes) {
		return
	}
	s.health.report(writing, s.add(nameOf(digest), archive))
}

// read reads an archive, and removes what isn't the one that its name says.
func (s *Store) read(root *os.Root, digest string) ([]byte, error) {
	name := nameOf(digest)
	file, info, err := open(root, name, os.O_RDONLY)
	if errors.Is(err, errNoFile) {
		s.tellDamaged(digest)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var archive []byte
	if info.Size() <= s.largest {
		if archive, err = io.ReadAll(io.LimitReader(file, s.largest+1)); err != nil {
			return nil, err
		}
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != name {
		s.tellDamaged(digest)
		// Should another process have put the right one there just now, it is lost
		// to the cache, and to nobody else.
		return nil, errors.Join(fs.ErrNotExist, root.RemoveAll(name))
	}
	touch(root, name, info, archive, s.clock.Now())
	return archive, nil
}

func (s *Store) tellDamaged(digest string) {
	corruptions.Inc()
	s.health.log.Info("An archive of the cache was damaged; it is dropped, and will be fetched again", "digest", digest)
}

// nameOf is the file of an archive. It is made of digests in the right form only:
// so no name leads anywhere else.
func nameOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
