// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// task is a request on its way to a worker.
type task struct {
	req   *protocol.Request
	files []artifact.File
	// payload is the request without its files, but with their digest.
	payload []byte
}

func newTask(req *protocol.Request) (*task, error) {
	t := &task{req: req}
	var err error
	files := req.Files()
	if files == nil {
		t.payload, err = protocol.Encode(req)
		return t, err
	}
	t.files, req.FilesDigest = *files, artifact.Content{Files: *files}.Digest()
	*files = nil
	t.payload, err = protocol.Encode(req)
	*files = t.files
	return t, err
}

// size returns the bytes of the whole request.
func (t *task) size() int64 {
	bytes := int64(len(t.payload))
	for _, file := range t.files {
		bytes += int64(len(file.Name) + len(file.Data))
	}
	return bytes
}

// withFiles returns the whole request. While others have the workers, it takes no memory.
func (t *task) withFiles() ([]byte, error) {
	if t.files == nil {
		return t.payload, nil
	}
	return protocol.Encode(t.req)
}
