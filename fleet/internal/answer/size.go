// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"bytes"
	"encoding/binary"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

// sizer counts what is decoded of a body, as it is read.
type sizer interface {
	// add returns the size of the largest object that the data have a part of, as far as it is known. The last data end the body.
	add(data []byte, last bool) int
	// pending returns the size of the object that has begun and hasn't ended, as far as it is known.
	pending() int
}

// sizerOf returns a sizer of a body with this header, which may be a stream of events. In a form that can't be counted, and
// that no client asks for, a server may still answer. Such an answer is said to be JSON, so that nothing else decodes it.
func sizerOf(header http.Header, stream bool) sizer {
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		if stream {
			return &protobufEvents{}
		}
		return &protobufBody{}
	case "", runtime.ContentTypeYAML, runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence:
		header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	return &jsonSize{}
}

// SizeOf returns the size of a whole body, in protobuf or in JSON.
func SizeOf(body []byte) int {
	if bytes.HasPrefix(body, protobufPrefix) {
		return protobufSize(body)
	}
	return jsonsize.Of(body)
}

// protobufBody is an object or a list that is said to be in protobuf. Nobody decodes it before its end.
type protobufBody struct{ data []byte }

func (p *protobufBody) add(data []byte, last bool) int {
	p.data = append(p.data, data...)
	if !last {
		return 0
	}
	return SizeOf(p.data)
}

func (p *protobufBody) pending() int { return len(p.data) }

// protobufEvents are events in protobuf, of which each has its length before it.
type protobufEvents struct{ data []byte }

func (p *protobufEvents) add(data []byte, _ bool) (largest int) {
	const head = 4 // bytes of a length
	p.data = append(p.data, data...)
	for len(p.data) >= head {
		length := int(binary.BigEndian.Uint32(p.data))
		if len(p.data) < head+length {
			return max(largest, len(p.data))
		}
		largest = max(largest, protobufSize(p.data[head:head+length]))
		p.data = p.data[head+length:]
	}
	if len(p.data) == 0 {
		p.data = nil // most watches are idle
	}
	return largest
}

func (p *protobufEvents) pending() int { return len(p.data) }
