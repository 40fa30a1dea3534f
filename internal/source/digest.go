// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/cluster-chandler/chandler/internal/render"
)

// directoryDomain starts the stream that a directory's digest is taken of. No
// gzip archive starts like it, so an archive and a directory never share a digest;
// nor do a directory with files and plain manifests, which have no NUL.
const directoryDomain = "chandler directory v1\n"

// content is what an origin delivers: an archive that nobody has looked into yet, or
// plain manifests in its place, or the files of a directory. One of both is set.
type content struct {
	kind    Kind // that it is unpacked as
	archive []byte
	files   []render.File
	site    site // of an archive on another host
	// manifest lists the files, each with its digest, if they were fetched one by one
	// from another host.
	manifest []byte
}

// digest identifies the content; see [Artifact.Digest] for what it is taken of.
func (c content) digest() string {
	if c.manifest != nil {
		sum := sha256.Sum256(c.manifest)
		return formatDigest(sum[:])
	}
	if c.files == nil {
		sum := sha256.Sum256(c.archive)
		return formatDigest(sum[:])
	}
	hash := sha256.New()
	hash.Write([]byte(directoryDomain))
	var length [8]byte
	write := func(size int) {
		binary.BigEndian.PutUint64(length[:], uint64(size))
		hash.Write(length[:])
	}
	for _, file := range c.files {
		write(len(file.Name))
		hash.Write([]byte(file.Name))
		write(len(file.Data))
		hash.Write(file.Data)
	}
	return formatDigest(hash.Sum(nil))
}

// bytes is the size of the content, as it was fetched.
func (c content) bytes() int64 {
	size := int64(len(c.archive) + len(c.manifest))
	for _, file := range c.files {
		size += int64(len(file.Data))
	}
	return size
}

func formatDigest(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
