// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/lru"
)

// task is a request on its way to a worker.
type task struct {
	req   *request
	files []artifact.File
	// payload is the request without its files.
	payload []byte
}

func newTask(req *request) (*task, error) {
	t := &task{req: req}
	if files := req.files(); files != nil {
		t.files, req.FileSet = *files, fileSetOf(*files)
	}
	var err error
	t.payload, err = encodeRequest(req)
	return t, err
}

// size is that of the whole request, in bytes.
func (t *task) size() int64 { return int64(len(t.payload)) + sizeOf(t.files) }

// withFiles returns the request for a worker that doesn't have its files.
func (t *task) withFiles() ([]byte, error) {
	whole := *t.req
	whole.NewFiles = append([]artifact.File{}, t.files...) // not nil
	return encodeRequest(&whole)
}

func encodeRequest(req *request) ([]byte, error) {
	payload, err := encoding.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode render request: %w", err)
	}
	return payload, nil
}

// fileSet identifies the files of a request, which a worker may have from one before.
type fileSet [sha256.Size]byte

// fileSetOf returns the digest of all names and contents.
func fileSetOf(files []artifact.File) fileSet {
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
	return fileSet(h.Sum(nil))
}

func sizeOf(files []artifact.File) (bytes int64) {
	for _, f := range files {
		bytes += int64(len(f.Name) + len(f.Data))
	}
	return bytes
}

// keptFiles is how much of a worker's memory files may take between requests: a sixteenth.
const keptFiles = 16

func newFileSets(memoryBytes int64) *lru.Cache[fileSet, []artifact.File] {
	return lru.New[fileSet](memoryBytes/keptFiles, sizeOf)
}

// files are those of a request for objects; nil if it is another one.
func (req *request) files() *[]artifact.File {
	switch {
	case req.Chart != nil:
		return &req.Chart.Files
	case req.Kustomization != nil:
		return &req.Kustomization.Files
	case req.Manifests != nil:
		return &req.Manifests.Files
	}
	return nil
}
