// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/contained"
)

// atOnce is how many add-ons of one cluster are worked on at the same time, at most.
const atOnce = 4

// Beside is the room for add-ons beside the one that each worker has. It is a quarter of the workers': a few clusters behind slow
// links get their add-ons in the time that the longest takes, and a large fleet takes hardly more memory and requests at once. While
// memory is waited for, there is none: more at once would only take time from namespaces that need little.
//
// Key: none, as all clusters share it.
// Bound: a quarter of the workers, and what one cluster may have.
// Lost with it: nothing, as the add-ons' work ends with the process.
type Beside struct {
	spare  *semaphore.Weighted
	memory *budget.Budget
}

// NewBeside returns the room of an instance with so many workers, and a memory that may be nil.
func NewBeside(workers int, memory *budget.Budget) *Beside {
	return &Beside{spare: semaphore.NewWeighted(int64(max(atOnce-1, workers/atOnce))), memory: memory}
}

// take reports whether there was room for one more add-on.
func (b *Beside) take() bool { return b.memory.Usage().Waiting == 0 && b.spare.TryAcquire(1) }

// Each calls do for 0 to n-1, and returns once all calls have. Each one comes after those that it follows, which have lower numbers.
// The others come in their order, beside each other if there is room. It panics if a call does.
func (b *Beside) Each(n int, follows func(int) []int, do func(int)) {
	group := contained.Group{Group: &errgroup.Group{}}
	over, begun, ended := make(chan int), sets.New[int](), sets.New[int]()
	next := func() int {
		for i := range n {
			if !begun.Has(i) && ended.HasAll(follows(i)...) {
				return i
			}
		}
		return -1
	}
	for ended.Len() < n {
		running := begun.Len() - ended.Len()
		if i := next(); i >= 0 && (running == 0 || running < atOnce && b.take()) {
			begun.Insert(i)
			group.Go(func() error {
				defer func() { over <- i }()
				do(i)
				return nil
			})
			continue
		}
		ended.Insert(<-over)
		if running > 1 {
			b.spare.Release(1)
		}
	}
	_ = group.Wait() // which panics if a call did
}
