// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package artifact

import "time"

// work runs f, and returns how long that took.
func work(f func()) time.Duration {
	started := time.Now()
	f()
	return time.Since(started)
}
