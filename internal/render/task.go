// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/cluster-chandler/chandler/internal/artifact"
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
