// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"io"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// endOfArchive is what may follow a tar archive's last entry: zeros, up to a full
// record of tar's largest usual blocking factor.
const endOfArchive = 1 << 20 // bytes

// meter reads expanded content, and refuses to read more of it than the limits allow.
type meter struct {
	in     io.Reader
	check  *inspection // shared with the archives inside this one
	header int64       // Bytes left of the header being read; negative between headers
}

// startHeader limits what is read until endHeader is called.
func (m *meter) startHeader() {
	const padding = 512 // of the entry before
	m.header = m.check.limits.HeaderBytes + padding
}

func (m *meter) endHeader() { m.header = -1 }

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	inHeader := m.header >= 0
	most := m.check.total
	if inHeader {
		most = min(most, m.header, m.check.headers)
	}
	if int64(len(p)) > most+1 { // one more, to tell the end from the limit
		p = p[:most+1]
	}
	n, err := m.in.Read(p)
	limits := m.check.limits
	if m.check.total -= int64(n); m.check.total < 0 {
		return 0, failure.TooLarge("its expanded content", limits.TotalBytes)
	}
	if inHeader {
		if m.header -= int64(n); m.header < 0 {
			return 0, failure.TooLarge("the header of an entry", limits.HeaderBytes)
		}
		if m.check.headers -= int64(n); m.check.headers < 0 {
			return 0, failure.TooLarge("the sum of all headers", limits.allHeaders())
		}
	}
	return n, err
}

// drain reads what follows the last entry, which has to be zeros, and by that
// makes the decompressor verify its checksum.
func (m *meter) drain() error {
	m.endHeader()
	buffer := make([]byte, 4<<10)
	for left := endOfArchive; left > 0; {
		n, err := m.Read(buffer)
		left -= n
		for _, b := range buffer[:n] {
			if b != 0 {
				return failure.New(failure.ArtifactRefused, "there is more content after the end of its tar archive; make the archive anew")
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
	}
	return failure.New(failure.ArtifactRefused, "there is more content after the end of its tar archive; make the archive anew")
}
