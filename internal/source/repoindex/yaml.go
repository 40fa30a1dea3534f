// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// lineBytes is how much of a line is looked at. Only descriptions and annotations
// are longer, and these are skipped.
const lineBytes = 64 << 10

// maxVersionValues bounds what is in the fields of one version: the parser compares all keys of a
// map with each other.
const maxVersionValues = 1000

// readYAML follows the indentation: "entries:" at the margin, the charts' names
// below it, a list below each name, and the fields of a version in each item.
func (b *builder) readYAML(in *bufio.Reader) error {
	reader := &yamlReader{builder: b, charts: -1}
	for {
		line, whole, err := readLine(in)
		if len(line) > 0 {
			if err := reader.line(line, whole); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := reader.endItem(); err != nil {
		return err
	}
	if !reader.found {
		return ErrNoIndex
	}
	return nil
}

// readLine returns a line, or the part of it that fits, without its end.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	line, err = in.ReadSlice('\n')
	whole = !errors.Is(err, bufio.ErrBufferFull)
	if !whole {
		line = bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
	}
	return bytes.TrimRight(line, " \r\n"), whole, err
}

// yamlReader is where in the index the reader is.
type yamlReader struct {
	*builder
	found  bool   // "entries:" was there
	inside bool   // of entries
	charts int    // indentation of the charts' names; -1: not known yet
	chart  string // the one being read
	dash   int    // indentation of its list; -1: not known yet
	fields int    // indentation of the item's fields; -1: not known yet
	item   bool   // inside of an item
	flow   bool   // the item is in flow style, and all of it is wanted
	wanted bool   // lines that belong to a field are
	broken bool   // the item can't be used
	text   bytes.Buffer
}

// line takes the next line.
func (r *yamlReader) line(line []byte, whole bool) error {
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case len(text) == 0 || text[0] == '#' || indent == 0 && (bytes.Equal(text, []byte("---")) || text[0] == '%'):
		return nil
	case indent == 0 && (!r.inside || text[0] != '-'):
		if err := r.endItem(); err != nil {
			return err
		}
		return r.topLevel(text)
	case !r.inside:
		return nil
	}
	if r.charts < 0 {
		r.charts = indent
	}
	switch {
	case indent < r.charts:
		return ErrNoIndex
	case indent == r.charts && !isItem(text):
		return r.startChart(text, whole)
	case isItem(text) && (r.dash < 0 || indent == r.dash):
		return r.startItem(text, indent, whole)
	case r.item:
		r.itemLine(text, indent, whole)
		return nil
	}
	return ErrNoIndex // something below a chart's name that is no list
}

// topLevel takes a line at the margin.
func (r *yamlReader) topLevel(text []byte) error {
	key, value, isKey := splitKey(text)
	if !isKey {
		return ErrNoIndex
	}
	if r.inside = key == "entries"; !r.inside {
		return nil
	}
	if r.found {
		return ErrNoIndex
	}
	r.found = true
	switch string(value) {
	case "", "{}", "null":
		return nil
	}
	return ErrNoIndex
}

func (r *yamlReader) startChart(text []byte, whole bool) error {
	if err := r.endItem(); err != nil {
		return err
	}
	key, value, isKey := splitKey(text)
	if !isKey || !whole || len(value) > 0 && string(value) != "[]" && string(value) != "null" {
		return ErrNoIndex
	}
	r.chart, r.dash = key, -1
	return nil
}

// startItem takes the line with a list item's dash, which may have its first field.
func (r *yamlReader) startItem(text []byte, indent int, whole bool) error {
	if r.chart == "" {
		return ErrNoIndex
	}
	if err := r.endItem(); err != nil {
		return err
	}
	r.dash, r.fields, r.item = indent, -1, true
	first := bytes.TrimLeft(text[1:], " ")
	if len(first) == 0 {
		return nil
	}
	if r.flow = first[0] == '{'; r.flow {
		r.keep(first, 0, whole)
		return nil
	}
	r.itemLine(first, indent+len(text)-len(first), whole)
	return nil
}

// itemLine takes a line of an item: a field of it, or what belongs to one.
func (r *yamlReader) itemLine(text []byte, indent int, whole bool) {
	if r.flow {
		r.keep(text, 1, whole)
		return
	}
	if r.fields < 0 {
		r.fields = indent
	}
	switch {
	case indent < r.fields:
		r.broken = true
		return
	case indent == r.fields && !isItem(text): // a list may be as far in as its field
		key, _, _ := splitKey(text)
		r.wanted = key == "version" || key == "urls" || key == "digest"
	}
	if r.wanted {
		r.keep(text, indent-r.fields, whole)
	}
}

// keep hands a line to the YAML parser, later.
func (r *yamlReader) keep(text []byte, indent int, whole bool) {
	if !whole || r.text.Len()+indent+len(text) > r.limits.VersionBytes {
		r.broken = true
	}
	if r.broken {
		return
	}
	for range indent {
		r.text.WriteByte(' ')
	}
	r.text.Write(text)
	r.text.WriteByte('\n')
}

// endItem parses what was kept of an item. One that can't be parsed is left out,
// as Helm does.
func (r *yamlReader) endItem() error {
	if !r.item {
		return nil
	}
	var found fields
	limits := yamllimit.Limits{Bytes: r.limits.VersionBytes, Values: maxVersionValues, Depth: 100, Written: 8 * r.limits.VersionBytes}
	if !r.broken && limits.Check(r.text.Bytes()) == nil {
		if err := yaml.Unmarshal(r.text.Bytes(), &found); err != nil {
			found = fields{}
		}
	}
	r.text.Reset()
	r.item, r.flow, r.wanted, r.broken = false, false, false, false
	return r.add(r.chart, found)
}

func isItem(text []byte) bool { return text[0] == '-' && (len(text) == 1 || text[1] == ' ') }

// splitKey reads "key: value", with a plain or simply quoted key.
func splitKey(text []byte) (key string, value []byte, isKey bool) {
	if quote := text[0]; quote == '"' || quote == '\'' {
		end := bytes.IndexByte(text[1:], quote)
		if end < 0 {
			return "", nil, false
		}
		key, text = string(text[1:1+end]), text[end+2:]
		if len(text) == 0 || text[0] != ':' {
			return "", nil, false
		}
		return key, bytes.TrimSpace(text[1:]), true
	}
	colon := bytes.IndexByte(text, ':')
	if colon <= 0 || colon+1 < len(text) && text[colon+1] != ' ' {
		return "", nil, false
	}
	return string(bytes.TrimRight(text[:colon], " ")), bytes.TrimSpace(text[colon+1:]), true
}
