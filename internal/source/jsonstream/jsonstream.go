// SPDX-License-Identifier: Apache-2.0

// Package jsonstream reads large JSON value by value, and holds no more of it than one.
package jsonstream

import (
	"encoding/json"
	"errors"
	"io"
)

// maxDepth is how deep what is skipped may be: the decoder keeps its place in each level.
const maxDepth = 1000

var (
	// ErrTooLarge says that one value is larger than what is accepted.
	ErrTooLarge = errors.New("a value in it is too large")
	// ErrOther says that something else is there than what is wanted.
	ErrOther = errors.New("it has another form")
)

// Decoder is one of JSON whose single values are bounded.
type Decoder struct{ *json.Decoder }

// New reads from in. A value that is read in one go, as a text or what Decode takes, may
// have so many bytes.
func New(in io.Reader, most int64) Decoder {
	window := &window{in: in, most: most}
	window.decoder = json.NewDecoder(window)
	return Decoder{window.decoder}
}

// window lets a decoder have only so much at once.
type window struct {
	in      io.Reader
	decoder *json.Decoder
	most    int64
	given   int64
}

// Read implements io.Reader.
func (w *window) Read(p []byte) (int, error) {
	left := w.most - (w.given - w.decoder.InputOffset())
	if left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := w.in.Read(p[:min(int64(len(p)), left)])
	w.given += int64(n)
	return n, err
}

// Object calls read for each key of an object, in front of its value. In an object's
// place may be null.
func (d Decoder) Object(read func(key string) error) error {
	return d.each('{', func() error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, isText := key.(string)
		if !isText {
			return ErrOther
		}
		return read(name)
	})
}

// Array calls read in front of each value of an array. In an array's place may be null.
func (d Decoder) Array(read func() error) error { return d.each('[', read) }

func (d Decoder) each(start json.Delim, read func() error) error {
	first, err := d.Token()
	if err != nil {
		return err
	}
	if first == nil {
		return nil
	}
	if first != start {
		return ErrOther
	}
	for d.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// Skip reads a value, and holds no more of it than one token.
func (d Decoder) Skip() error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return ErrOther
		}
		if depth == 0 {
			return nil
		}
	}
}
