// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"os"
	"runtime/metrics"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// guardMemory ends the process soon after it passes its limit. A faster
// growth, by one huge allocation, meets the kernel's limit (enterSandbox).
func guardMemory(limit int64) {
	for range time.Tick(10 * time.Millisecond) {
		if memoryInUse() > limit {
			os.Exit(protocol.ExitOutOfMemory)
		}
	}
}

// memoryInUse returns the memory of Go's runtime, without the part that it has given back, in bytes.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
