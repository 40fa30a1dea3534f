// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// ErrUnexpected means that the manager and a worker disagree; a fault of this package.
var ErrUnexpected = errors.New("render worker: unexpected answer")

// Kinds of frames. A frame is the length of the rest (4 bytes, big-endian), one byte for its kind, and a payload.
const (
	FrameReady    = 'h' // worker to parent, once: started and limited
	FrameFile     = 'f' // parent to worker: the next content of a request, see [Request.Detach]
	FrameRequest  = 'q' // parent to worker: a request in CBOR, whose contents have come before
	FrameStage    = 's' // worker to parent: the stage a request has reached
	FrameResponse = 'r' // worker to parent: a response in CBOR
)

// ErrFrameTooLarge is returned for a frame beyond its limit.
var ErrFrameTooLarge = errors.New("frame is too large")

// WriteFrame writes one frame.
func WriteFrame(w io.Writer, kind byte, payload []byte) error {
	if len(payload) >= math.MaxUint32 {
		return ErrFrameTooLarge
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+1))
	if _, err := w.Write(append(head, kind)); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// ReadFrame reads one frame whose payload has at most limit bytes.
func ReadFrame(r io.Reader, limit int64) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:4])) - 1
	switch {
	case length < 0:
		return 0, nil, ErrUnexpected
	case length > limit:
		return 0, nil, ErrFrameTooLarge
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("incomplete frame: %w", err)
	}
	return head[4], payload, nil
}
