// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"sync"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

// inParallel calls f for 0 to n-1, and returns what failed, in that order. It panics if
// one of them does.
func (r *run) inParallel(n int, f func(int) *failure) failures {
	results, panics := make([]*failure, n), make([]*observe.Panic, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, r.d.options.MaxParallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			defer func() { panics[i] = observe.PanicOf(recover()) }()
			results[i] = f(i)
		})
	}
	wg.Wait()
	for _, there := range panics {
		if there != nil {
			panic(there) // where it is contained
		}
	}
	var failed failures
	for _, each := range results {
		if each != nil {
			failed = append(failed, each)
		}
	}
	return failed
}
