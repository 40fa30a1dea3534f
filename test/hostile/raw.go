// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/targz"
)

// rawHeader is a tar header that tar.Writer would refuse to write.
func rawHeader(name string, kind byte, size string, change ...func(block []byte)) []byte {
	block := make([]byte, 512)
	copy(block[0:100], name)
	copy(block[100:108], "0000644\x00")
	copy(block[124:136], size)
	block[156] = kind
	copy(block[257:265], "ustar\x0000")
	for _, f := range change {
		f(block)
	}
	copy(block[148:156], "        ")
	sum := 0
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return block
}

// rawEntry is a header and its content, padded.
func rawEntry(name string, kind byte, data string) []byte {
	padded := make([]byte, (len(data)+511)/512*512)
	copy(padded, data)
	return append(rawHeader(name, kind, fmt.Sprintf("%011o\x00", len(data))), padded...)
}

// rawChart is a gzip stream of a Chart.yaml's entry and these blocks, without an end.
func rawChart(t testing.TB, blocks ...[]byte) []byte {
	t.Helper()
	return targz.Gzip(t, bytes.NewReader(rawEntry("demo/Chart.yaml", '0', targz.ChartYAML)), bytes.NewReader(bytes.Join(blocks, nil)))
}

// zeros reads as that many zero bytes.
func zeros(size int64) io.Reader { return io.LimitReader(zeroReader{}, size) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func chartWith(entries ...targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return targz.Chart(t, entries...) }
}

func only(entries ...targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return targz.Of(t, entries...) }
}

func raw(blocks ...[]byte) func(testing.TB) []byte {
	return func(t testing.TB) []byte { return rawChart(t, blocks...) }
}

// many is a chart with that many more entries.
func many(count int, next func(i int) targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte {
		entries := []targz.Entry{}
		for i := range count {
			entries = append(entries, next(i))
		}
		return targz.Chart(t, entries...)
	}
}

// Nest puts a chart into charts/ of another, so many times.
func Nest(t testing.TB, inner []byte, times int) []byte {
	for range times {
		inner = targz.Chart(t, targz.Entry{Name: "demo/charts/inner.tgz", Data: string(inner)})
	}
	return inner
}

const mebibyte = 1 << 20 // bytes

// gnuSparse turns a header into that of a sparse file of 1 TiB in GNU's old format.
func gnuSparse(block []byte) {
	copy(block[257:265], "ustar  \x00")
	copy(block[386:398], "00000000000\x00") // offset of the first part
	copy(block[398:410], "00000000000\x00") // its size
	copy(block[483:495], "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00")
}

// paxRecords formats keys and values as a PAX header's content.
func paxRecords(pairs ...string) string {
	var out strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		record := " " + pairs[i] + "=" + pairs[i+1] + "\n"
		size := len(record)
		for len(fmt.Sprint(size))+len(record) != size {
			size = len(fmt.Sprint(size)) + len(record)
		}
		fmt.Fprintf(&out, "%d%s", size, record)
	}
	return out.String()
}
