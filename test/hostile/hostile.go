// SPDX-License-Identifier: Apache-2.0

// Package hostile makes charts and bundles that are meant to do harm: to be written where
// they don't belong, or to take more time and memory than any honest one.
package hostile

import (
	"testing"
	"time"
)

// The most that one of them may cost.
const (
	Time   = time.Second
	Memory = 64 << 20 // bytes of heap at a time, garbage included
)

// Archive is a hostile chart.
type Archive struct {
	Reason string // that it is refused for; "" if it is accepted, and costs no more than it may
	Says   string // part of the error
	Make   func(t testing.TB) []byte
}

// Bundle is a hostile bundle, and the charts in it that somebody asks for.
type Bundle struct {
	Archive
	Paths []string
}
