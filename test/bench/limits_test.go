// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// TestCounts holds what a fleet costs: writes, unpackings and renderings are exact. Of requests there are more or fewer watches, by how
// soon an object is ready.
func TestCounts(t *testing.T) {
	long.InCI(t)
	const n = 20
	// With one renderer, none renders what another one is about to.
	f := startFleet(t, size{Clusters: n, Servers: 2, Instances: 1, Addons: 4, Renderers: 1}, realdata.Path(t, "charts"))
	for _, tc := range []struct {
		name                           string
		run                            func() phase
		writes, recordWrites, requests float64
		unpackings, renderings         float64
	}{
		// Cilium has certificates of each cluster's own, so its renderings aren't shared.
		{name: "install", run: f.install, writes: 85, recordWrites: 10, requests: 135, unpackings: 4, renderings: n + 3},
		{name: "upgrade", run: f.upgrade, writes: 4, recordWrites: 3, requests: 15, renderings: 1},
		// One of the two writes is a dry run.
		{name: "drift", run: func() phase { f.settle(); return f.drift() }, writes: 2, requests: 11},
		{name: "restart", run: f.restart, requests: 43},
	} {
		p := tc.run()
		t.Logf("%s: %v requests, %v writes, of records %v; %v unpackings, %v renderings: %s",
			tc.name, p.Requests, p.Writes, p.RecordWrites, p.Unpackings, p.Renderings, p.RequestsByUse)
		if p.Writes != tc.writes || p.RecordWrites != tc.recordWrites {
			t.Errorf("%s: %v writes for each cluster, of records %v; want %v and %v", tc.name, p.Writes, p.RecordWrites, tc.writes, tc.recordWrites)
		}
		// Each add-on lists its records once, and again after ten seconds, which a busy machine takes many times. A watch lists them, too.
		if most := 2 + float64(f.size.Addons)*(1+p.Seconds/10); p.recordLists > most {
			t.Errorf("%s: %v lists of records for each cluster, at most %v", tc.name, p.recordLists, most)
		}
		if others := p.Requests - p.recordLists; others > tc.requests {
			t.Errorf("%s: %v requests for each cluster beside lists of records, at most %v", tc.name, others, tc.requests)
		}
		if p.Unpackings != tc.unpackings || p.Renderings != tc.renderings {
			t.Errorf("%s: %v unpackings and %v renderings, want %v and %v", tc.name, p.Unpackings, p.Renderings, tc.unpackings, tc.renderings)
		}
	}
}
