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
	// payload is the request without its files.
	payload []byte
}

func newTask(req *protocol.Request) (*task, error) {
	t := &task{req: req}
	if files := req.Files(); files != nil {
		t.files, req.FileSet = *files, protocol.FileSetOf(*files)
	}
	var err error
	t.payload, err = protocol.Encode(req)
	return t, err
}

// size returns the bytes of the whole request.
func (t *task) size() int64 { return int64(len(t.payload)) + protocol.SizeOf(t.files) }

// withFiles returns the request for a worker that doesn't have its files.
func (t *task) withFiles() ([]byte, error) {
	whole := *t.req
	whole.NewFiles = append([]artifact.File{}, t.files...) // not nil
	return protocol.Encode(&whole)
}
