// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"time"
)

// MaxUnused bounds the values that are kept of calls that aren't made any more, in bytes.
const MaxUnused = maxUnused

// SetClock sets the time that templates see.
func (g *Generator) SetClock(clock func() time.Time) { g.clock = clock }
