// SPDX-License-Identifier: Apache-2.0

// Package jsonsize says what JSON takes once it is decoded, without decoding any of it: "{}," may become a struct of
// hundreds of bytes.
package jsonsize

// Bytes that a value counts at least, however short its text.
const (
	Value   = 4   // a value, a key, or a list
	Object  = 16  // an object that has a key
	Element = 64  // an object in a list
	Item    = 256 // an element of a list that the outermost object has, as each object of a list of them
)

// Counter counts JSON that comes in parts. Its zero value has counted nothing. For a text that is no JSON, it returns some
// numbers.
type Counter struct {
	bytes, values, more, depth int
	quoted, escaped            bool
	last                       byte // that isn't a space
}

// Read counts the data to the end of an outermost object or list, and returns the data after it.
func (c *Counter) Read(data []byte) (rest []byte, ended bool) {
	for i, b := range data {
		c.bytes++
		switch {
		case c.escaped:
			c.escaped = false
			continue
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
			continue
		case b == ' ', b == '\t', b == '\n', b == '\r':
			continue
		}
		c.count(b)
		if c.last = b; c.depth == 0 && (b == '}' || b == ']') {
			return data[i+1:], true
		}
	}
	return nil, false
}

// count takes in a character that is neither in a string nor a space.
func (c *Counter) count(b byte) {
	switch b {
	case '"':
		if c.quoted = true; c.last == '{' {
			c.more += Object
		}
	case '{', '[':
		if b == '{' && (c.last == '[' || c.last == ',') {
			c.more += Element
			if c.depth == 2 {
				c.more += Item - Element
			}
		}
		c.values++
		c.depth++
	case '}', ']':
		if c.depth--; c.last == '{' || c.last == '[' { // which has no first value
			c.values--
			c.more += Value
		}
	case ',', ':':
		c.values++
	}
}

// Size returns how many bytes were read, or how many their values count, whichever is more.
func (c *Counter) Size() int { return max(c.bytes, Value*c.values+c.more) }

// Of returns the size of a text.
func Of(text []byte) int {
	c := counted(text)
	return c.Size()
}

// Values returns how many values a text has, keys included.
func Values(text []byte) int {
	c := counted(text)
	return c.values + 1
}

func counted(text []byte) (c Counter) {
	for len(text) > 0 {
		text, _ = c.Read(text)
	}
	return c
}
