// SPDX-License-Identifier: Apache-2.0

// Package yamllimit refuses YAML and JSON that would take much memory or time to decode,
// before anything decodes them. Aliases are what makes that needed: the decoders write
// them out, so that a few KiB become GiB, and no recover catches that.
package yamllimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Limits of a text, all documents in it together.
type Limits struct {
	// Bytes of the text.
	Bytes int
	// Values are its scalars, keys, lists and maps, with all aliases written out. The text may
	// have no more lines and commas than that, either: this bounds the work of looking.
	Values int
	// Depth of lists and maps in each other.
	Depth int
	// Written is the size as JSON, in bytes, with all aliases written out.
	Written int
}

// Handwritten are limits of values, patches and other files that people write: above what they do
// (Cilium's values.yaml has 0.15 MiB and 3000 values), below what hurts.
var Handwritten = Limits{
	Bytes:   1 << 20, // as much as a Secret or a ConfigMap holds
	Values:  150_000, // about 35 MiB while they are checked
	Depth:   200,
	Written: 4 << 20,
}

// Manifest are limits of one document of a manifest: above any object that an API server takes, and
// what lists have.
var Manifest = Limits{
	Bytes:   16 << 20,
	Values:  300_000, // about 200 MiB while they are decoded
	Depth:   500,     // custom resource definitions reach about 40
	Written: 16 << 20,
}

// Size is what YAML or JSON comes to.
type Size struct {
	Values, Written, Depth int
}

// Check refuses YAML that is beyond the limits. It never follows an alias, and most texts it need
// not parse at all. An error may quote the text, as parsers do.
func (l Limits) Check(text []byte) error {
	if len(text) > l.Bytes {
		return fmt.Errorf("%d bytes, at most %d", len(text), l.Bytes)
	}
	most, entries := atMost(text)
	if entries > l.Values {
		return fmt.Errorf("more than %d lines and list items", l.Values)
	}
	if !mayHaveAliases(text) && l.refuse(most) == nil {
		return nil
	}
	return l.checkNodes(text)
}

// checkNodes parses each document, without the values that its nodes stand for.
func (l Limits) checkNodes(text []byte) error {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var total Size
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		size, err := l.measure(&document, 0, map[*yamlv3.Node]Size{})
		if err != nil {
			return err
		}
		if total = total.and(size); l.refuse(total) != nil {
			return l.refuse(total)
		}
	}
}

// refuse says which limit a size is beyond, nil for none.
func (l Limits) refuse(size Size) error {
	switch {
	case size.Values > l.Values:
		return fmt.Errorf("more than %d values", l.Values)
	case size.Written > l.Written:
		return fmt.Errorf("larger than %d bytes with all aliases written out", l.Written)
	case size.Depth > l.Depth:
		return fmt.Errorf("nested deeper than %d", l.Depth)
	}
	return nil
}

// and adds what is beside something else.
func (s Size) and(other Size) Size {
	return Size{Values: s.Values + other.Values, Written: s.Written + other.Written, Depth: max(s.Depth, other.Depth)}
}
