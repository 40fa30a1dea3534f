// SPDX-License-Identifier: Apache-2.0

package job

// Limits are the options that the worker itself keeps.
type Limits struct {
	OutputBytes    int64
	MaxObjects     int
	GeneratedBytes int
}

// FrameBytes bounds one answer: the manifest's text, the same as objects, and what was generated.
func (l Limits) FrameBytes() int64 { return 4*l.OutputBytes + int64(l.GeneratedBytes) + 1<<20 }
