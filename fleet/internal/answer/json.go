// SPDX-License-Identifier: Apache-2.0

package answer

// jsonSize counts the bytes of one JSON value in a stream of them. The decoder keeps
// them all until the value ends.
type jsonSize struct {
	bytes, values, depth int
	quoted, escaped      bool
	last                 byte // that isn't a space
}

// add returns the size of the largest value that the data have a part of: of its text, or of what it has, whichever is larger.
func (j *jsonSize) add(data []byte, _ bool) int {
	largest := 0
	for _, c := range data {
		j.bytes++
		switch {
		case j.escaped:
			j.escaped = false
			continue
		case j.quoted:
			j.escaped, j.quoted = c == '\\', c != '"'
			continue
		case c == ' ', c == '\t', c == '\n', c == '\r':
			continue
		}
		j.count(c)
		if j.last = c; j.depth == 0 && (c == '}' || c == ']') {
			largest = max(largest, j.bytes, j.values)
			*j = jsonSize{}
		}
	}
	return max(largest, j.pending())
}

func (j *jsonSize) pending() int { return max(j.bytes, j.values) }

// count takes in a character that is neither in a string nor a space.
func (j *jsonSize) count(c byte) {
	switch c {
	case '"':
		if j.quoted = true; j.last == '{' {
			j.values += object
		}
	case '{', '[':
		if c == '{' && (j.last == '[' || j.last == ',') {
			j.values += element
			if j.depth == 2 {
				j.values += item - element
			}
		}
		j.values += anyValue
		j.depth++
	case '}', ']':
		j.depth--
	case ',', ':':
		j.values += anyValue
	}
}
