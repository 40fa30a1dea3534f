// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// BenchmarkShortMemory measures what a claim costs that ends and begins while hundreds grow, and dozens wait.
func BenchmarkShortMemory(b *testing.B) {
	memory := budget.New(budget.Limits{All: 512, Namespace: 256, Cluster: 192, Reserve: 64, Entry: 16})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	waiting := 0
	for i := 0; waiting < 50; i++ {
		c := memory.Claim(tenant([]string{"a", "b"}[i%2], fmt.Sprint(i%50)), 32)
		if !c.Try(1) {
			go func() { _ = c.Grow(ctx, 1) }()
			waiting++
		}
	}
	for memory.Usage().Waiting < waiting {
		continue
	}
	for b.Loop() {
		c := memory.Claim(tenant("c", "1"), 1)
		if !c.Try(1) {
			b.Fatal("it isn't granted")
		}
		c.End()
	}
}
