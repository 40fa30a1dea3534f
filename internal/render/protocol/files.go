// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// FileSet identifies the files of a request, which a worker may have from one before.
type FileSet [sha256.Size]byte

// FileSetOf returns the digest of all names and contents.
func FileSetOf(files []artifact.File) FileSet {
	h := sha256.New()
	var length [8]byte
	write := func(data []byte) {
		binary.BigEndian.PutUint64(length[:], uint64(len(data)))
		h.Write(length[:])
		h.Write(data)
	}
	for _, f := range files {
		write([]byte(f.Name))
		write(f.Data)
	}
	return FileSet(h.Sum(nil))
}

// SizeOf returns the bytes of all names and contents.
func SizeOf(files []artifact.File) (bytes int64) {
	for _, f := range files {
		bytes += int64(len(f.Name) + len(f.Data))
	}
	return bytes
}
