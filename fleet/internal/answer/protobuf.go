// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"bytes"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
)

// protobufPrefix is what an object in protobuf begins with.
var protobufPrefix = []byte("k8s\x00")

// maxDepth is how deep messages in protobuf are looked at, which bounds the stack. Kubernetes' own have some 15 levels.
const maxDepth = 100

// protobufSize returns the size of a message: of its bytes, or of the values that it may be decoded into, whichever is larger.
// Nothing tells a message in it from a string, so what may be either is taken for a message. A text is none.
func protobufSize(message []byte) int { return max(len(message), protobufValues(message, 0)) }

// protobufValues counts the fields of a message, and of the messages in it, as far as a decoder may read them. It reads
// numbers that are longer than they need to be, as a decoder does.
func protobufValues(message []byte, depth int) (size int) {
	var known uint64 // fields that were there before
	message = bytes.TrimPrefix(message, protobufPrefix)
	for len(message) > 0 {
		tag, rest, ok := varint(message)
		if !ok {
			break
		}
		var length uint64
		size += jsonsize.Value // as a field
		kind := protowire.Type(tag & 7)
		switch kind {
		case protowire.VarintType:
			_, rest, ok = varint(rest)
		case protowire.Fixed64Type:
			length = 8
		case protowire.Fixed32Type:
			length = 4
		case protowire.BytesType:
			length, rest, ok = varint(rest)
		case protowire.StartGroupType, protowire.EndGroupType: // its fields count as if they were the message's
		default:
			ok = false
		}
		if !ok || length > uint64(len(rest)) {
			break
		}
		value := rest[:length]
		if message = rest[length:]; kind != protowire.BytesType {
			continue
		}
		if bit := uint64(1) << (tag >> 3 & 63); known&bit == 0 {
			known |= bit
		} else if size += jsonsize.Element; depth < 2 {
			size += jsonsize.Item - jsonsize.Element
		}
		if depth < 2 || depth < maxDepth && !isText(value) {
			size += protobufValues(value, depth+1)
		}
	}
	return size
}

// varint returns the number that data begin with, and what follows. Kubernetes' decoders drop bits beyond 64.
func varint(data []byte) (number uint64, rest []byte, ok bool) {
	for i := 0; i < 10 && i < len(data); i++ {
		number |= uint64(data[i]&0x7f) << (7 * i)
		if data[i] < 0x80 {
			return number, data[i+1:], true
		}
	}
	return 0, nil, false
}

// isText reports whether a value has characters alone that can be seen. No message of less than 32 bytes is in such a value.
func isText(value []byte) bool {
	for _, b := range value {
		if b < ' ' {
			return false
		}
	}
	return utf8.Valid(value)
}
