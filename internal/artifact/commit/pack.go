// SPDX-License-Identifier: Apache-2.0

// Package commit reads the files of a commit out of a pack, as a Git server sends it. A pack is hostile until all of it is
// read: so worker processes read it (package opener).
package commit

import (
	"bytes"
	"encoding/binary"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// object of a pack. Its hash is that of its content, so whoever names it gets no other.
type object struct {
	kind plumbing.ObjectType
	data []byte
}

// unpacking reads a pack, and counts what its objects take.
type unpacking struct {
	limits  artifact.Limits
	left    int64 // bytes to expand
	at      map[int64]plumbing.Hash
	objects map[plumbing.Hash]object
}

// unpack returns the objects of a pack. The size of each is compared with what is left before it is expanded.
func unpack(pack []byte, limits artifact.Limits) (map[plumbing.Hash]object, error) {
	u := &unpacking{limits: limits, left: limits.TotalBytes, at: map[int64]plumbing.Hash{}, objects: map[plumbing.Hash]object{}}
	scanner := packfile.NewScanner(bytes.NewReader(pack))
	_, count, err := scanner.Header()
	if err != nil {
		return nil, broken()
	}
	if most := 2 * limits.Entries; int64(count) > int64(most) { // files and directories
		return nil, failure.TooMany("objects of the commit", most)
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return nil, broken()
		}
		if err := u.take(header.Length); err != nil {
			return nil, err
		}
		var data bytes.Buffer
		if written, _, err := scanner.NextObject(&data); err != nil || written != header.Length {
			return nil, broken()
		}
		read := object{header.Type, data.Bytes()}
		if header.Type.IsDelta() {
			if read, err = u.patched(header, read.data); err != nil {
				return nil, err
			}
		}
		hash := plumbing.ComputeHash(read.kind, read.data)
		u.at[header.Offset], u.objects[hash] = hash, read
	}
	return u.objects, nil
}

// patched returns the object that a delta makes of an earlier one. That may be made by a delta, too; it is whole already.
func (u *unpacking) patched(header *packfile.ObjectHeader, delta []byte) (object, error) {
	of := header.Reference
	if header.Type == plumbing.OFSDeltaObject {
		of = u.at[header.OffsetReference]
	}
	base, known := u.objects[of]
	_, n := binary.Uvarint(delta)
	size, m := binary.Uvarint(delta[max(n, 0):])
	if !known || n <= 0 || m <= 0 || int64(size) < 0 {
		return object{}, broken()
	}
	if err := u.take(int64(size)); err != nil {
		return object{}, err
	}
	data, err := packfile.PatchDelta(base.data, delta)
	if err != nil {
		return object{}, broken()
	}
	return object{base.kind, data}, nil
}

// take counts bytes that are about to be expanded.
func (u *unpacking) take(size int64) error {
	if u.left -= size; size < 0 || u.left < 0 {
		return failure.TooLarge("the expanded content of the commit", u.limits.TotalBytes)
	}
	return nil
}

// broken returns the error of what no Git server makes. The library's words may be another text each time.
func broken() error {
	return failure.New(failure.ArtifactInvalid, "what the server sends in place of the commit is damaged, or isn't whole; check the repository with `git fsck`")
}
