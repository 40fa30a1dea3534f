// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// add makes room for a file, and writes it.
func (s *Store) add(name string, data []byte) error {
	bytes := int64(len(data))
	err := s.insist(bytes, func(root *os.Root) error {
		if err := s.makeRoom(root, bytes, withinLimit); err != nil {
			return err
		}
		return write(root, name, data, s.clock.Now())
	})
	if errors.Is(err, errInUse) {
		return nil // it isn't kept, as others are in use; that is no failure
	}
	if err == nil {
		bytesKept.Add(float64(bytes))
	}
	return err
}

// insist does what adds that many bytes once more, if there is a chance:
//
//   - The volume is full. It may be smaller than the limit, have room for few files, or
//     have others' files: as much is dropped as is added. If that isn't enough, others
//     take what gets free, and would do so until nothing is left.
//   - The directory was emptied or removed at that moment.
func (s *Store) insist(bytes int64, do func(*os.Root) error) error {
	failure := s.change(do)
	switch {
	case isGone(failure):
		return s.change(do)
	case isFull(failure):
		return s.change(func(root *os.Root) error {
			if s.makeRoom(root, bytes, inReplacement) != nil {
				return failure
			}
			return do(root)
		})
	}
	return failure
}

// isFull tells whether there is no room on the volume, be it for bytes or for files.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isGone tells whether something was removed, on NFS also by another node meanwhile.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE)
}
