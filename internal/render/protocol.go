// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/fxamacker/cbor/v2"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
)

// A frame is its length (4 bytes, big-endian, of what follows), one byte for its kind, and a payload.
const (
	frameReady    = 'h' // worker to parent, once: started and limited
	frameRequest  = 'q' // parent to worker: a request in CBOR
	frameStage    = 's' // worker to parent: the stage a request has reached
	frameResponse = 'r' // worker to parent: a response in CBOR
)

// request is one task for a worker; one of the pointers is set.
type request struct {
	Chart         *ChartRequest
	Kustomization *FilesRequest
	Manifests     *FilesRequest
	Values        *ValuesRequest
	Template      *TemplateRequest
	Open          *opener.Job
	Limits        limits

	// FileSet is that of the Files. NewFiles are they, for a worker that doesn't have them.
	FileSet  fileSet
	NewFiles []artifact.File
}

// makesObjects reports whether the answer has objects: not values, nor files.
func (req *request) makesObjects() bool {
	return req.Chart != nil || req.Kustomization != nil || req.Manifests != nil
}

// response is a worker's answer to one request; one of the pointers is set.
type response struct {
	Failure  *failure
	Result   *Result
	Values   map[string]any
	Template *string
	Opened   *opener.Opened
	// Asked are the lookups of a chart that the request had no answers for, also of one that failed.
	Asked []Lookup
	// MemoryBytes is what the worker holds after the request.
	MemoryBytes int64
	// Retire asks for another worker next time: this one saw a panic.
	Retire bool
	// WithoutFiles asks for the request again, with its files: the worker has them no more.
	WithoutFiles bool

	payload []byte // that this was decoded from
}

// failure is an Error on the wire.
type failure struct{ Reason, Message string }

var errFrameTooLarge = errors.New("frame is too large")

// CBOR and not JSON, because it keeps 3 and 3.0 apart, as templates do, and bytes as they are.
var (
	encoding = must(cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode())
	decoding = must(cbor.DecOptions{
		DefaultMapType:   mapType,
		IntDec:           cbor.IntDecConvertSignedOrFail,
		UTF8:             cbor.UTF8DecodeInvalid,
		MaxNestedLevels:  10_000,
		MaxArrayElements: math.MaxInt32,
		MaxMapPairs:      math.MaxInt32,
	}.DecMode())
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err) // constants above are wrong
	}
	return value
}

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	if len(payload) >= math.MaxUint32 {
		return errFrameTooLarge
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+1))
	if _, err := w.Write(append(head, kind)); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readFrame reads one frame whose payload has at most limit bytes.
func readFrame(r io.Reader, limit int64) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:4])) - 1
	switch {
	case length < 0:
		return 0, nil, errProtocol
	case length > limit:
		return 0, nil, errFrameTooLarge
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("incomplete frame: %w", err)
	}
	return head[4], payload, nil
}
