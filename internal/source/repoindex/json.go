// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cluster-chandler/chandler/internal/source/jsonstream"
)

// maxJSON bounds an index in JSON.
const maxJSON = 16 << 20 // bytes

// maxJSONVersion bounds one version in it.
const maxJSONVersion = 1 << 20 // bytes

// readJSON reads an index that `helm repo index --json` wrote, version by version.
func (b *builder) readJSON(in *bufio.Reader) error {
	if err := b.reserve(); err != nil {
		return err
	}
	limited := &limitedReader{in: in, left: min(b.limits.Bytes, maxJSON)}
	decoder := jsonstream.New(limited, maxJSONVersion)
	found := false
	err := decoder.Object(func(key string) error {
		if key != "entries" {
			return decoder.Skip()
		}
		found = true
		return decoder.Object(func(chart string) error { return b.jsonVersions(decoder, chart) })
	})
	switch {
	case limited.err != nil:
		return limited.err
	case err != nil:
		return broken(err)
	case !found:
		return ErrNoIndex
	}
	return nil
}

func (b *builder) jsonVersions(decoder jsonstream.Decoder, chart string) error {
	return decoder.Array(func() error {
		var version struct {
			Version string    `json:"version"`
			URLs    [1]string `json:"urls"` // others are of no use, and may be many
			Digest  string    `json:"digest"`
		}
		if err := decoder.Decode(&version); err != nil {
			return err
		}
		return b.add(chart, fields{Version: version.Version, URLs: version.URLs[:], Digest: version.Digest})
	})
}

// broken is the error of an index that isn't as it should be: an end before its end is
// one, too.
func broken(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge), errors.Is(err, errNoRoom):
		return err
	case errors.Is(err, jsonstream.ErrTooLarge):
		return fmt.Errorf("%w: more than %d bytes of one version", ErrTooLarge, maxJSONVersion)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrNoIndex, err)
}
