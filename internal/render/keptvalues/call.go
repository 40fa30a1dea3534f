// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"crypto/pbkdf2"
	"crypto/sha256"
)

// call is one call of a generating function.
type call struct {
	// key is the function's name and a hash of its arguments.
	key string
	// position tells it from other calls with this key: a hash of the template that it is in,
	// those that included that one, and its number among the calls there.
	position string
	template string // and those that include it
	args     string
	text     string
	from     *previousValue // whose value it was given; nil if it made one
	inOthers bool           // it came out in what other calls made of it alone
	evaluate func(text string) (string, verdict)
	places
}

func (c *call) id() string { return c.key + "/" + c.position }

func hashCall(input string, password bool) []byte {
	if password { // about 2ms; the arguments are no easier to guess than from bcrypt's own hash
		if slow, err := pbkdf2.Key(sha256.New, input, []byte("chandler/generated"), 10_000, 16); err == nil {
			return slow
		}
	}
	sum := sha256.Sum256([]byte(input))
	return sum[:16]
}
