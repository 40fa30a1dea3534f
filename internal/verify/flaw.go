// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strconv"
)

// Flaw says why a signature doesn't count, as in "it is made with another key".
// What it quotes of the signature is shortened and in ASCII.
type Flaw struct{ text string }

// Error is what is wrong.
func (f *Flaw) Error() string { return f.text }

func flaw(format string, args ...any) *Flaw { return &Flaw{fmt.Sprintf(format, args...)} }

// quote shows a text that comes from elsewhere.
func quote(text string) string {
	const shown = 128 // bytes
	if len(text) > shown {
		return strconv.QuoteToASCII(text[:shown]) + "..."
	}
	return strconv.QuoteToASCII(text)
}
