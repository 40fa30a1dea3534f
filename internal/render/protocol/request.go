// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Request is one task for a worker; one of the pointers is set.
type Request struct {
	Chart    *job.Chart
	Objects  *job.Files
	Values   *job.Values
	Template *job.Template
	Names    *job.Names
	Open     *opener.Job
	Limits   job.Limits

	// ContentsDigest is that of what [Request.Detach] returns: two requests with equal files share an answer.
	ContentsDigest string
}

// MakesObjects reports whether the answer has objects: not values, nor files.
func (req *Request) MakesObjects() bool {
	return req.Chart != nil || req.Objects != nil
}

// contents returns where the files of a request are, and other bytes that may be as large; nil if it has none.
func (req *Request) contents() (files *[]artifact.File, data *[]byte) {
	switch open := req.Open; {
	case req.Chart != nil:
		return &req.Chart.Files, nil
	case req.Objects != nil:
		return &req.Objects.Files, nil
	case open == nil:
	case open.Unpack != nil:
		return &open.Unpack.Content.Files, &open.Unpack.Content.Archive
	case open.Index != nil:
		return nil, &open.Index.Data
	case open.YAML != nil:
		return nil, &open.YAML.Data
	case open.Package != nil:
		return &open.Package.Files, nil
	}
	return nil, nil
}

// Detach takes the contents out of a request, and leaves the names of files. They are sent as they are in memory: to encode
// them would take as much again. [Request.Attach] puts them back.
func (req *Request) Detach() (contents [][]byte) {
	files, data := req.contents()
	if data != nil && *data != nil {
		contents, *data = append(contents, *data), []byte{}
	}
	if files == nil || *files == nil {
		return contents
	}
	names := make([]artifact.File, len(*files)) // others have the files, too
	for i, file := range *files {
		names[i].Name = file.Name
		contents = append(contents, file.Data)
	}
	*files = names
	return contents
}

// Attach puts the contents back. It reports whether there are as many as were taken out.
func (req *Request) Attach(contents [][]byte) bool {
	files, data := req.contents()
	if data != nil && *data != nil && len(contents) > 0 {
		*data, contents = contents[0], contents[1:]
	}
	if files == nil || len(*files) != len(contents) {
		return len(contents) == 0
	}
	for i := range *files {
		(*files)[i].Data = contents[i]
	}
	return true
}

// Response is a worker's answer to one request; one of the pointers is set.
type Response struct {
	Failure  *Failure
	Result   *job.Result
	Values   map[string]any
	Template *string
	Names    []string
	Opened   *opener.Opened
	// Asked are the lookups of a chart that the request had no answers for, also of one that failed.
	Asked []job.Lookup
	// MemoryBytes is the memory of the worker after the request.
	MemoryBytes int64
	// Retire asks for another worker next time: this one saw a panic.
	Retire bool

	// Payload is the CBOR that this was decoded from.
	Payload []byte `cbor:"-"`
}

// Failure is an Error on the wire.
type Failure struct{ Reason, Message string }
