// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

const (
	// grantsOf ends the name of the file with an archive's grants, after that of the archive.
	grantsOf = ".grants"
	// maxGrants bounds such a file: it has room for some 16,000.
	maxGrants = 1 << 20 // bytes
)

// Grant notes that a title gives the right to the archive. What a title is, is the
// caller's business; only its hash is kept. Grants go when their archive goes.
func (s *Store) Grant(digest, title string) {
	if s == nil || !digestForm.MatchString(digest) {
		return
	}
	line := "\n" + hashOf(title) + "\n"
	err := s.insist(int64(len(line)), func(root *os.Root) error {
		if _, err := root.Stat(nameOf(digest)); err != nil {
			return nil //nolint:nilerr // it isn't kept, so there is nothing to grant
		}
		// A line of its own, whatever a crash left of the one before. It is short
		// enough for several processes to append at once.
		file, info, err := open(root, nameOf(digest)+grantsOf, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
		if err != nil {
			return err
		}
		if info.Size() < maxGrants {
			_, err = file.WriteString(line)
		}
		return errors.Join(err, file.Close())
	})
	s.health.report(writing, err)
}

// Granted tells whether the title gives the right to the archive.
func (s *Store) Granted(digest, title string) bool {
	if s == nil || !digestForm.MatchString(digest) {
		return false
	}
	lines, err := within(s, false, func(root *os.Root) ([]byte, error) {
		file, _, err := open(root, nameOf(digest)+grantsOf, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		lines, err := io.ReadAll(io.LimitReader(file, maxGrants+1<<10))
		return lines, errors.Join(err, file.Close())
	})
	s.health.reportRead(err)
	return bytes.Contains(lines, []byte("\n"+hashOf(title)+"\n"))
}

func hashOf(title string) string {
	sum := sha256.Sum256([]byte(title))
	return hex.EncodeToString(sum[:])
}
