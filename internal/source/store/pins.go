// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
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
	s.health.report(writing, s.add(hashOf(name)+pinSuffix, []byte(digest+"\n")))
}

// Pinned returns the digest that a name stands for, if it is known.
func (s *Store) Pinned(name string) (digest string, known bool) {
	if s == nil {
		return "", false
	}
	digest, err := within(s, false, func(root *os.Root) (string, error) {
		return s.readPin(root, hashOf(name)+pinSuffix)
	})
	s.health.reportRead(err)
	return digest, err == nil
}

// readPin reads a digest, and removes what is none.
func (s *Store) readPin(root *os.Root, name string) (string, error) {
	file, info, err := open(root, name, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, int64(pinBytes)+1))
	if err != nil {
		return "", err
	}
	digest := strings.TrimSuffix(string(data), "\n")
	if !digestForm.MatchString(digest) {
		return "", errors.Join(fs.ErrNotExist, root.RemoveAll(name))
	}
	touch(root, name, info, data, s.clock.Now())
	return digest, nil
}

// isKept tells the name of an archive or a pin from what a crash left behind.
func isKept(name string) bool {
	return digestForm.MatchString("sha256:" + strings.TrimSuffix(name, pinSuffix))
}
