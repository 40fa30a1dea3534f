// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
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

// room says where some is to be made.
type room int

const (
	withinLimit   room = iota // in what may be kept at most
	inReplacement             // in what is kept now, as the volume has no more
)

// makeRoom drops what crashes left behind, and then, until that many bytes fit in,
// what was used least recently. What can't be removed takes room, and is passed over.
func (s *Store) makeRoom(root *os.Root, bytes int64, where room) error {
	entries, err := list(root)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	kept := make([]entry, 0, len(entries))
	var taken int64
	for _, e := range joined(entries) {
		if !isKept(e.name) && age(now, e.used) > unfinishedFor && drop(root, e) == nil {
			continue
		}
		taken += e.bytes
		kept = append(kept, e)
	}
	defer func() { bytesKept.Set(float64(taken)) }()
	limit := s.bytes
	if where == inReplacement {
		limit = min(limit, taken)
	}
	slices.SortFunc(kept, func(a, b entry) int { return cmp.Compare(age(now, b.used), age(now, a.used)) })
	count := len(kept)
	fits := func() bool { return taken+bytes <= limit && count < maxEntries }
	var stuck error
	for _, e := range kept {
		if fits() {
			return nil
		}
		if age(now, e.used) <= Busy {
			return errInUse
		}
		if err := drop(root, e); err != nil {
			stuck = err
			continue
		}
		if isKept(e.name) {
			evictions.Inc()
		}
		taken -= e.bytes
		count--
	}
	if fits() {
		return nil
	}
	return cmp.Or(stuck, errInUse)
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
		if err != nil {
			continue // it is gone, or damaged; the others aren't
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

// isKept tells the name of an archive from what a crash left behind.
func isKept(name string) bool { return digestForm.MatchString("sha256:" + name) }
