// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSON bounds an index in JSON: all of one version in it is held in memory.
const maxJSON = 16 << 20 // bytes

// readJSON reads an index that `helm repo index --json` wrote, version by version.
func (b *builder) readJSON(in *bufio.Reader) error {
	limited := &limitedReader{in: in, left: min(b.limits.Bytes, maxJSON)}
	decoder := json.NewDecoder(limited)
	found := false
	err := object(decoder, func(key string) error {
		if key != "entries" {
			return skip(decoder)
		}
		found = true
		return object(decoder, func(chart string) error { return b.jsonVersions(decoder, chart) })
	})
	switch {
	case limited.err != nil:
		return limited.err
	case err != nil:
		return err
	case !found:
		return ErrNoIndex
	}
	return nil
}

func (b *builder) jsonVersions(decoder *json.Decoder, chart string) error {
	start, err := decoder.Token()
	if err != nil {
		return broken(err)
	}
	if start == nil {
		return nil
	}
	if start != json.Delim('[') {
		return ErrNoIndex
	}
	for decoder.More() {
		var version struct {
			Version string    `json:"version"`
			URLs    [1]string `json:"urls"` // others are of no use, and may be many
			Digest  string    `json:"digest"`
		}
		if err := decoder.Decode(&version); err != nil {
			return broken(err)
		}
		if err := b.add(chart, fields{Version: version.Version, URLs: version.URLs[:], Digest: version.Digest}); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return broken(err)
}

// object calls read for each key of an object, in front of its value.
func object(decoder *json.Decoder, read func(key string) error) error {
	start, err := decoder.Token()
	if err != nil {
		return broken(err)
	}
	if start == nil {
		return nil
	}
	if start != json.Delim('{') {
		return ErrNoIndex
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return broken(err)
		}
		if err := read(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return broken(err)
}

// skip reads a value, and holds no more of it than one token.
func skip(decoder *json.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return broken(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// broken is the error of JSON that isn't: an end before its end is one, too.
func broken(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrNoIndex, err)
}
