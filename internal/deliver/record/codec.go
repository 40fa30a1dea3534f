// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// Keys of the Secret's data.
const (
	releaseKey = "release"
	stateKey   = "chandler"
	crdsKey    = "crds"
)

// Limits of the unpacked content of a record. A record is written by us or by Helm. Yet anybody who
// may write Secrets there can change it. Rendered objects are smaller (package render).
const (
	maxInflated = 64 << 20 // bytes, of each key
	// maxValues of the objects of a manifest, and of CRDs, keys included.
	maxValues = 1_000_000
	// maxFields of what is decoded into structs, which take more memory.
	maxFields = 500_000
	// maxRatio is above what gzip can do.
	maxRatio = 1100
)

// compressors are kept, as a new one takes 800 KiB.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// deflate compresses data in one piece.
func deflate(data []byte) ([]byte, error) { return deflateAll(slices.Values([][]byte{data})) }

// deflateAll compresses pieces with gzip, one after the other. It refuses more bytes than inflate would.
func deflateAll(pieces iter.Seq[[]byte]) ([]byte, error) {
	var b bytes.Buffer
	w := compressors.Get().(*gzip.Writer) //nolint:forcetypeassert // nothing else is put there
	defer compressors.Put(w)
	w.Reset(&b)
	written := 0
	for piece := range pieces {
		if written += len(piece); written > maxInflated {
			return nil, &Fault{Kind: TooLarge, Err: fmt.Errorf("takes %d bytes, more than the %d that are read", written, maxInflated)}
		}
		if _, err := w.Write(piece); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func inflate(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var out bytes.Buffer
	if announced := int(binary.LittleEndian.Uint32(data[len(data)-4:])); announced <= min(maxInflated, maxRatio*len(data)) {
		out.Grow(announced + bytes.MinRead) // growing step by step takes thrice as much
	}
	if _, err := out.ReadFrom(io.LimitReader(r, maxInflated+1)); err != nil {
		return nil, err
	}
	if out.Len() > maxInflated {
		return nil, fmt.Errorf("unpacks to more than %d MiB", maxInflated>>20)
	}
	return out.Bytes(), nil
}

// encodeRelease writes a release as Helm does (pkg/storage/driver/util.go).
func encodeRelease(r *helmrelease.Release) ([]byte, error) {
	outer := *r
	packed, err := packAround(r.Manifest, &outer.Manifest, &outer)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed), nil
}

// decodeRelease reads what Helm or encodeRelease wrote. Very old Helm versions
// didn't compress.
func decodeRelease(data []byte) (*helmrelease.Release, error) {
	plain, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(plain, []byte{0x1f, 0x8b, 0x08}) {
		if plain, err = inflate(plain); err != nil {
			return nil, err
		}
	}
	r := &helmrelease.Release{}
	if err := yamllimit.DecodeJSON(plain, maxFields, r); err != nil {
		return nil, err
	}
	if i := slices.Index(r.Hooks, nil); i >= 0 {
		return nil, fmt.Errorf("hooks[%d] is null", i)
	}
	if r.Info == nil {
		r.Info = &helmrelease.Info{}
	}
	return r, nil
}

// packJSON and unpackJSON are gzip(json(v)).
func packJSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return deflate(data)
}

// packAround is packJSON of v with text in a field of it. The text is encoded by the line: as a whole, it would take
// encoding/json several times its memory.
func packAround(text string, field *string, v any) ([]byte, error) {
	*field = rand.Text()
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(data, []byte(*field))
	return deflateAll(func(yield func([]byte) bool) {
		more := yield(before)
		for line := range strings.Lines(text) {
			encoded, _ := json.Marshal(line) // a string has an encoding
			if more = more && yield(encoded[1:len(encoded)-1]); !more {
				return
			}
		}
		_ = more && yield(after)
	})
}

func unpackJSON(data []byte, values int, v any) error {
	plain, err := inflate(data)
	if err != nil {
		return err
	}
	return yamllimit.DecodeJSON(plain, values, v)
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
