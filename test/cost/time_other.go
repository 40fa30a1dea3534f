// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cost

import "time"

var begun = time.Now()

// Elsewhere it is the time that passes.
func threadTime() time.Duration  { return time.Since(begun) }
func processTime() time.Duration { return time.Since(begun) }
