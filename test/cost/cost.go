// SPDX-License-Identifier: Apache-2.0

// Package cost measures what a function takes: processor time and memory, so that a test can
// say how much that may be, however busy the machine is.
package cost

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Cost of a function.
type Cost struct {
	Work      time.Duration
	Held      uint64 // bytes by which the heap was larger at its largest, garbage included
	Allocated uint64 // bytes in all
}

// Of measures a function that works on one goroutine.
func Of(f func()) Cost { return measured(threadTime, f) }

// OfAll measures a function that works on any number of goroutines; what others do at the
// same time counts, too.
func OfAll(f func()) Cost { return measured(processTime, f) }

// Quick measures work and allocations of a function on one goroutine. It takes no time itself, so it fits many functions.
func Quick(f func()) Cost {
	var before, after runtime.MemStats
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.ReadMemStats(&before)
	start := threadTime()
	f()
	work := threadTime() - start
	runtime.ReadMemStats(&after)
	return Cost{Work: work, Allocated: after.TotalAlloc - before.TotalAlloc}
}

// RaceDetector reports whether the race detector is on: a process holds several times as much then.
func RaceDetector() bool { return raceEnabled }

// Expect fails the test if it took more. With the race detector, it may take 20 times as
// long, and hold twice as much: what is garbage is noticed later.
func (c Cost) Expect(t testing.TB, work time.Duration, held uint64) {
	t.Helper()
	if raceEnabled {
		work *= 20
		held *= 2
	}
	if c.Work > work {
		t.Errorf("took %s, want at most %s", c.Work, work)
	}
	if c.Held > held {
		t.Errorf("held %d MiB, want at most %d MiB", c.Held>>20, held>>20)
	}
}

// measured looks at the heap each 100 µs.
func measured(now func() time.Duration, f func()) Cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	base := heap()
	done, highest := make(chan struct{}), make(chan uint64)
	go func() {
		most := base
		for tick := time.Tick(100 * time.Microsecond); ; {
			select {
			case <-tick:
				most = max(most, heap())
			case <-done:
				highest <- max(most, heap())
				return
			}
		}
	}()
	runtime.LockOSThread()
	started := now()
	f()
	took := now() - started
	runtime.UnlockOSThread()
	close(done)
	held := <-highest - base
	runtime.ReadMemStats(&after)
	return Cost{Work: took, Held: held, Allocated: after.TotalAlloc - before.TotalAlloc}
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
