// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	// pinSuffix ends the name of a file with a digest, after the hash of what it is of.
	pinSuffix = ".pin"
	// pinBytes is the size of such a file.
	pinBytes = len("sha256:") + 64 + len("\n")
)

// Pin remembers the digest that a name stands for. Unlike an archive, nothing in it
// tells whether it is right: who can write to the directory can change it. It goes
// when it wasn't used for longest, as archives do.
func (s *Store) Pin(name, digest string) {
	if s == nil || !digestForm.MatchString(digest) {
		return
	}
	err := s.within(true, func(root *os.Root) error {
		if err := s.makeRoom(root, int64(pinBytes)); err != nil {
			return err
		}
		return write(root, hashOf(name)+pinSuffix, []byte(digest+"\n"), s.clock.Now())
	})
	if errors.Is(err, errInUse) {
		return
	}
	s.health.report(writing, err)
}

// Pinned returns the digest that a name stands for, if it is known.
func (s *Store) Pinned(name string) (digest string, known bool) {
	if s == nil {
		return "", false
	}
	err := s.within(false, func(root *os.Root) (err error) {
		digest, err = s.readPin(root, hashOf(name)+pinSuffix)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.health.report(reading, err)
	}
	return digest, err == nil
}

// readPin reads a digest, and removes what is none.
func (s *Store) readPin(root *os.Root, name string) (string, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	var data []byte
	if info.Mode().IsRegular() {
		if data, err = io.ReadAll(io.LimitReader(file, int64(pinBytes)+1)); err != nil {
			return "", err
		}
	}
	digest := strings.TrimSuffix(string(data), "\n")
	if !digestForm.MatchString(digest) {
		return "", errors.Join(fs.ErrNotExist, root.RemoveAll(name))
	}
	if now := s.clock.Now(); now.Sub(info.ModTime()) > touchEvery {
		_ = root.Chtimes(name, now, now) // on a read-only disk, its age doesn't matter
	}
	return digest, nil
}

// isKept tells the name of an archive or a pin from what a crash left behind.
func isKept(name string) bool {
	return digestForm.MatchString("sha256:" + strings.TrimSuffix(name, pinSuffix))
}
