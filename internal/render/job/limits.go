// SPDX-License-Identifier: Apache-2.0

package job

// Limits bound the results of a job. A worker itself keeps them.
type Limits struct {
	OutputBytes    int64
	MaxObjects     int
	GeneratedBytes int
}

// MostMade are the limits of a rendering. The values that it generates are kept in Secrets, which end at 1 MiB.
var MostMade = Limits{OutputBytes: 16 << 20, MaxObjects: 5000, GeneratedBytes: 256 << 10}

// FrameBytes bounds one answer: the manifest's text, the same as objects, and generated values.
func (l Limits) FrameBytes() int64 { return 4*l.OutputBytes + int64(l.GeneratedBytes) + 1<<20 }
