// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
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

// valueBytes is about how much memory a value of a record takes beside its text.
const valueBytes = 64

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

// reader unpacks the content of a record. The zero value reads anything.
type reader struct {
	// hold is called with how much memory the next step takes, before that takes it. Nil allows all.
	hold func(bytes int64) error
	// refused is the error of hold, nil while there is none.
	refused error
	// size is what the content has: the bytes of its JSON, and valueBytes for each value in it.
	size int64
}

// take counts bytes of the content. While it is decoded, it takes three times as much memory.
func (in *reader) take(bytes int) error {
	in.size += int64(bytes)
	if in.hold != nil {
		in.refused = in.hold(3 * int64(bytes))
	}
	return in.refused
}

func (in *reader) inflate(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	announced := int(binary.LittleEndian.Uint32(data[len(data)-4:]))
	if announced > min(maxInflated, maxRatio*len(data)) {
		return nil, fmt.Errorf("unpacks to more than %d MiB, or isn't whole", maxInflated>>20)
	}
	if err := in.take(announced); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(announced + bytes.MinRead) // growing step by step takes thrice as much
	if _, err := out.ReadFrom(io.LimitReader(r, int64(announced)+1)); err != nil {
		return nil, err
	}
	if out.Len() > announced { // gzip continues with what follows, which isn't announced
		return nil, fmt.Errorf("unpacks to more than the %d bytes that it says", announced)
	}
	return out.Bytes(), nil
}

// decode reads JSON of at most so many values, keys included: "{}," may stand for a struct of hundreds of bytes.
func (in *reader) decode(plain []byte, values int, v any) error {
	n := jsonsize.Values(plain)
	if n > values {
		return fmt.Errorf("more than %d values", values)
	}
	if err := in.take(valueBytes * n); err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

// encodeRelease writes a release as Helm does (pkg/storage/driver/util.go).
func (out *writer) encodeRelease(r *helmrelease.Release) ([]byte, error) {
	outer := *r
	packed, err := out.packAround(r.Manifest, &outer.Manifest, &outer)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed), nil
}

// decodeRelease reads what Helm or encodeRelease wrote. Very old Helm versions
// didn't compress.
func (in *reader) decodeRelease(data []byte) (*helmrelease.Release, error) {
	plain, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(plain, []byte{0x1f, 0x8b, 0x08}) {
		plain, err = in.inflate(plain)
	} else {
		err = in.take(len(plain))
	}
	if err != nil {
		return nil, err
	}
	r := &helmrelease.Release{}
	if err := in.decode(plain, maxFields, r); err != nil {
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

// writer packs the content of a record.
type writer struct {
	size int64 // as a reader counts it
}

func (out *writer) put(data []byte) {
	out.size += int64(len(data) + valueBytes*jsonsize.Values(data))
}

// packJSON and unpackJSON are gzip(json(v)).
func (out *writer) packJSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out.put(data)
	return deflate(data)
}

// packAround is packJSON of v with text in a field of it. The text is encoded by the line: as a whole, it would take
// encoding/json several times its memory.
func (out *writer) packAround(text string, field *string, v any) ([]byte, error) {
	*field = rand.Text()
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	before, after, _ := bytes.Cut(data, []byte(*field))
	out.put(data)
	out.size -= int64(len(*field))
	return deflateAll(func(yield func([]byte) bool) {
		more := yield(before)
		for line := range strings.Lines(text) {
			encoded, _ := json.Marshal(line) // a string has an encoding
			out.size += int64(len(encoded) - 2)
			if more = more && yield(encoded[1:len(encoded)-1]); !more {
				return
			}
		}
		_ = more && yield(after)
	})
}

func (in *reader) unpackJSON(data []byte, values int, v any) error {
	plain, err := in.inflate(data)
	if err != nil {
		return err
	}
	return in.decode(plain, values, v)
}
