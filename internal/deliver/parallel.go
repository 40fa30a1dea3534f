// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

// maxParallel is the number of objects of an add-on that are written at the same time.
const maxParallel = 6

// inParallel calls f for 0 to n-1, and returns what failed, in that order. It panics if
// one of them does.
func inParallel(n int, f func(int) *failure) failures {
	results, panics := make(failures, n), make([]*observe.Panic, n)
	group := errgroup.Group{}
	group.SetLimit(maxParallel)
	for i := range n {
		group.Go(func() error {
			defer func() { panics[i] = observe.PanicOf(recover()) }()
			results[i] = f(i)
			return nil
		})
	}
	_ = group.Wait() // failures are told for each object
	for _, there := range panics {
		if there != nil {
			panic(there) // where it is contained
		}
	}
	return slices.DeleteFunc(results, func(f *failure) bool { return f == nil })
}
