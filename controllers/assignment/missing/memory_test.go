// SPDX-License-Identifier: Apache-2.0

package missing_test

import (
	"runtime"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestMemoryOfStacksThatStay has one stack be asked about for hours, by many clusters. It is remembered once.
func TestMemoryOfStacksThatStay(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	stacks := missing.New(nil, nil, clock)
	written := &addonsv1.AddonStack{}
	written.Namespace, written.Name = "team", "web"
	candidates := []candidate.Stack{{Name: "web"}}
	ask := func(times int) {
		for range times {
			clock.Step(200 * time.Millisecond)
			stacks.Note(written)
			stacks.Present("team", candidates)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	ask(1000)
	before := heap()
	ask(100_000) // in five hours and a half
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	must.Equal(t, false, stacks.Changed(client.ObjectKeyFromObject(written)).IsZero(), "forgotten")
	clock.Step(25 * time.Hour)
	must.Equal(t, true, stacks.Changed(client.ObjectKeyFromObject(written)).IsZero(), "forgotten a day later")
}
