// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// temporary is in the names of files that are being written.
	temporary = ".new-"
	// unfinishedFor is how old such a file is that nobody can be writing any more.
	unfinishedFor = 10 * time.Minute
	// maxFiles bounds the time that a look at the directory takes.
	maxFiles = 10_000
)

// makeRoom drops what crashes left behind, and then, until that many bytes fit into what may be
// kept at most, what was used least recently. A limit of 0 is half of what is kept now: the
// volume may be smaller than the store's own limit.
func (s *Store) makeRoom(bytes, limit int64) error {
	found, err := os.ReadDir(s.directory)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	var files []fs.FileInfo
	var taken int64
	for _, file := range found {
		info, err := file.Info()
		if err != nil {
			continue // another replica dropped it
		}
		if strings.Contains(info.Name(), temporary) && now.Sub(info.ModTime()).Abs() > unfinishedFor {
			_ = os.RemoveAll(filepath.Join(s.directory, info.Name())) // if that fails, it takes room
			continue
		}
		files = append(files, info)
		taken += info.Size()
	}
	defer func() {
		bytesKept.Set(float64(taken))
		s.looked, s.taken, s.count = now, taken, len(files)
	}()
	if limit == 0 {
		limit = taken / 2
	}
	// A time to come is as far off: the clock was set back since.
	age := func(info fs.FileInfo) time.Duration { return now.Sub(info.ModTime()).Abs() }
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(age(b), age(a)) })
	for count := len(files); len(files) > 0 && (taken+bytes > limit || count >= maxFiles); count-- {
		if err := os.RemoveAll(filepath.Join(s.directory, files[0].Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		evictions.Inc()
		taken -= files[0].Size()
		files = files[1:]
	}
	return nil
}

// report says once that the directory can't be written, and once that it can again.
func (s *Store) report(err error) {
	switch {
	case err != nil && !s.failed:
		s.log.Info("The cache can't be used; what isn't in it is fetched again when it is needed", "problem", err.Error())
	case err == nil && s.failed:
		s.log.Info("The cache can be used again")
	}
	if s.failed = err != nil; s.failed {
		usable.Set(0)
	} else {
		usable.Set(1)
	}
}
