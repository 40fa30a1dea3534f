// SPDX-License-Identifier: Apache-2.0

// Package yamllimit refuses YAML that would take much memory or time to decode,
// before anything decodes them. It is for release records, which the manager reads itself: they
// are of workload clusters, whose owners may change them. Rendered objects are held to the same
// limits, as they get into a record. All else that is hostile is read by workers (package render).
//
// The limits of the YAML library don't suffice. It counts aliases, and not the values that they
// stand for: 60 KiB with 4000 aliases of one long text take 500 MiB. No recover catches that.
package yamllimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Limits of a text, all documents in it together.
type Limits struct {
	// Bytes of the text.
	Bytes int
	// Values are its scalars, keys, lists and maps, with all aliases written out. The text may
	// have no more lines and commas than that, nor brackets and dashes: this bounds the
	// memory that it takes to look.
	Values int
	// Depth of lists and maps in each other.
	Depth int
	// Written is the size as JSON, in bytes, with all aliases written out.
	Written int
}

// Manifest are limits of one document of a manifest: above any object that an API server takes, and
// what lists have.
var Manifest = Limits{
	Bytes:   16 << 20,
	Values:  300_000, // about 200 MiB while they are decoded
	Depth:   500,     // custom resource definitions reach about 40
	Written: 16 << 20,
}

// size is what YAML comes to.
type size struct {
	Values, Written, Depth int
}

// Check refuses YAML that is beyond the limits. It never follows an alias, and most texts it need
// not parse at all. An error may quote the text, as parsers do.
func (l Limits) Check(text []byte) error {
	if len(text) > l.Bytes {
		return fmt.Errorf("%d bytes, at most %d", len(text), l.Bytes)
	}
	if !utf8.Valid(text) {
		return errors.New("it isn't UTF-8")
	}
	most, parts := atMost(text)
	if parts > l.Values {
		return fmt.Errorf("more than %d lines, dashes or brackets", l.Values)
	}
	if !mayHaveAliases(text) && l.refuse(most) == nil {
		return nil
	}
	return l.checkNodes(text)
}

// checkNodes parses each document, without the values that its nodes stand for.
func (l Limits) checkNodes(text []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var total size
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		is, err := l.measure(&document, 0, map[*yamlv3.Node]size{})
		if err != nil {
			return err
		}
		if total = total.and(is); l.refuse(total) != nil {
			return l.refuse(total)
		}
	}
}

// refuse says which limit a size is beyond, nil for none.
func (l Limits) refuse(is size) error {
	switch {
	case is.Values > l.Values:
		return fmt.Errorf("more than %d values", l.Values)
	case is.Written > l.Written:
		return fmt.Errorf("larger than %d bytes with all aliases written out", l.Written)
	case is.Depth > l.Depth:
		return fmt.Errorf("nested deeper than %d", l.Depth)
	}
	return nil
}

// and adds what is beside something else.
func (s size) and(other size) size {
	return size{Values: s.Values + other.Values, Written: s.Written + other.Written, Depth: max(s.Depth, other.Depth)}
}
