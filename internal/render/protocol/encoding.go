// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

var mapType = reflect.TypeFor[map[string]any]()

// Encoding and Decoding are CBOR and not JSON, because it keeps 3 and 3.0 apart, as templates do, and bytes as they are.
var (
	Encoding = must(cbor.EncOptions{Sort: cbor.SortBytewiseLexical}.EncMode())
	Decoding = must(cbor.DecOptions{
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

// Encode encodes a request.
func Encode(req *Request) ([]byte, error) {
	payload, err := Encoding.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode render request: %w", err)
	}
	return payload, nil
}
