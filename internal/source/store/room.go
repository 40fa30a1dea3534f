// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// maxEntries bounds the time that a look at the directory takes.
	maxEntries = 10_000
	// unfinishedFor is how old a file is that nobody can be writing any more: what
	// is written is in memory as a whole before.
	unfinishedFor = 10 * time.Minute
)

// errInUse says that all of the room is taken by what is in use.
var errInUse = errors.New("everything in the cache is in use")

// entry is an archive of the directory with its grants, or another file that takes room.
type entry struct {
	name  string
	bytes int64
	used  time.Time
}

// makeRoom drops what crashes left behind, and then, until that many bytes fit in,
// what was used least recently.
func (s *Store) makeRoom(root *os.Root, bytes int64) error {
	entries, err := list(root)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	kept := make([]entry, 0, len(entries))
	var taken int64
	for _, e := range joined(entries) {
		if !isKept(e.name) && now.Sub(e.used) > unfinishedFor {
			if err := drop(root, e); err != nil {
				return err
			}
			continue
		}
		taken += e.bytes
		kept = append(kept, e)
	}
	defer func() { bytesKept.Set(float64(taken)) }()
	slices.SortFunc(kept, func(a, b entry) int { return a.used.Compare(b.used) })
	for count := len(kept); taken+bytes > s.bytes || count >= maxEntries; count-- {
		if len(kept) == 0 || now.Sub(kept[0].used) <= Busy {
			return errInUse
		}
		if err := drop(root, kept[0]); err != nil {
			return err
		}
		if !strings.HasSuffix(kept[0].name, pinSuffix) {
			evictions.Inc()
		}
		taken -= kept[0].bytes
		kept = kept[1:]
	}
	return nil
}

// list returns the files of the directory. Another process may remove some meanwhile.
func list(root *os.Root) ([]entry, error) {
	directory, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	found, err := directory.ReadDir(-1)
	if err = errors.Join(err, directory.Close()); err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(found))
	for _, file := range found {
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{file.Name(), info.Size(), info.ModTime()})
	}
	return entries, nil
}

// joined counts grants as part of their archives.
func joined(files []entry) []entry {
	sizes := make(map[string]int64, len(files))
	for _, file := range files {
		sizes[file.name] = file.bytes
	}
	entries := make([]entry, 0, len(files))
	for _, file := range files {
		name, isGrants := strings.CutSuffix(file.name, grantsOf)
		if _, hasArchive := sizes[name]; isGrants && hasArchive {
			continue
		}
		file.bytes += sizes[file.name+grantsOf]
		entries = append(entries, file)
	}
	return entries
}

// drop removes a file with its grants. That it is gone already is fine.
func drop(root *os.Root, e entry) error {
	for _, name := range []string{e.name, e.name + grantsOf} {
		if err := root.RemoveAll(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
