// SPDX-License-Identifier: Apache-2.0

package render

import (
	"runtime"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// Options limit a Renderer. Zero values mean the defaults.
type Options struct {
	// Workers is the number of renderings at the same time. While a namespace has all of them, another one may have one
	// more, and so may a third one. Defaults to the number of CPUs, at most 4.
	Workers int
	// Timeout of one rendering, in time on a processor. Beside others it may take ten times as long. Defaults to 20s.
	Timeout time.Duration
	// Memory is where files that wait for workers count, and answers that are kept. Nil counts nothing.
	Memory *budget.Budget
	// MemoryBytes is the memory one worker may use. Defaults to 256 MiB.
	MemoryBytes int64
	// RequestsPerWorker is the number of requests after which a worker is replaced. Defaults to 200.
	RequestsPerWorker int
	// IdleTimeout is how long after its last chart a rendering process ends. Defaults to 15s.
	IdleTimeout time.Duration
}

// inputBytes is the size of one request: chart files, values and facts.
const inputBytes = 64 << 20

// startTimeout is for a worker to come up; it takes 0.1s on an idle machine.
const startTimeout = 30 * time.Second

func (o Options) withDefaults() Options {
	setDefault(&o.Workers, min(runtime.NumCPU(), 4))
	setDefault(&o.Timeout, 20*time.Second)
	setDefault(&o.MemoryBytes, 256<<20)
	setDefault(&o.RequestsPerWorker, 200)
	setDefault(&o.IdleTimeout, 15*time.Second)
	return o
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
