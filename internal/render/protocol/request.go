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

	// FilesDigest is that of the files of a request for objects: two with equal files share an answer.
	FilesDigest string
}

// MakesObjects reports whether the answer has objects: not values, nor files.
func (req *Request) MakesObjects() bool {
	return req.Chart != nil || req.Objects != nil
}

// Files returns the files of a request for objects; nil for any other request.
func (req *Request) Files() *[]artifact.File {
	switch {
	case req.Chart != nil:
		return &req.Chart.Files
	case req.Objects != nil:
		return &req.Objects.Files
	}
	return nil
}

// Fill gives the files their contents, in the order of the names. It reports whether each has one.
func (req *Request) Fill(contents [][]byte) bool {
	files := req.Files()
	if files == nil {
		return len(contents) == 0
	}
	if len(*files) != len(contents) {
		return false
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
