// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"os"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// guardMemory ends the process soon after it passes its limit. A faster
// growth, by one huge allocation, meets the kernel's limit (enterSandbox). It looks on while a request is answered: a
// worker that waits for one is to cost nothing.
func guardMemory(limit int64) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go wait.UntilWithContext(ctx, func(context.Context) {
		if memoryInUse() > limit {
			os.Exit(protocol.ExitOutOfMemory)
		}
	}, 10*time.Millisecond)
	return stop
}

// memoryInUse returns the memory of Go's runtime, without the part that it has given back, in bytes.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
