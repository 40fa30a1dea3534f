// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// task is a request on its way to a worker.
type task struct {
	req *protocol.Request
	// payload is the request with the names of its files, and the digest of all of them.
	payload []byte
	files   []artifact.File
}

func newTask(req *protocol.Request) (*task, error) {
	t := &task{req: req}
	if files := req.Files(); files != nil {
		t.files, req.FilesDigest = *files, artifact.Content{Files: *files}.Digest()
		*files = make([]artifact.File, len(t.files))
		for i := range t.files {
			(*files)[i].Name = t.files[i].Name
		}
		defer func() { *files = t.files }() // it may be asked again, with the answers to lookups
	}
	var err error
	t.payload, err = protocol.Encode(req)
	return t, err
}

// size returns the bytes of the request.
func (t *task) size() int64 {
	bytes := int64(len(t.payload))
	for _, file := range t.files {
		bytes += int64(len(file.Data))
	}
	return bytes
}
