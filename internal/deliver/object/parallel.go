// SPDX-License-Identifier: Apache-2.0

package object

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

// maxParallel is the number of objects of an add-on that are written at the same time.
const maxParallel = 6

// InParallel calls f for 0 to n-1, and returns what failed, in that order. It panics if
// one of them does.
func InParallel(n int, f func(int) *Failure) Failures {
	results := make(Failures, n)
	var panicked atomic.Pointer[observe.Panic]
	group := errgroup.Group{}
	group.SetLimit(maxParallel)
	for i := range n {
		group.Go(func() error {
			defer func() { panicked.CompareAndSwap(nil, observe.PanicOf(recover())) }()
			results[i] = f(i)
			return nil
		})
	}
	_ = group.Wait() // failures are told for each object
	if there := panicked.Load(); there != nil {
		panic(there) // where it is contained
	}
	return slices.DeleteFunc(results, func(f *Failure) bool { return f == nil })
}
