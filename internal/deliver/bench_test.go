// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// BenchmarkPlan measures what tells which objects of an upgrade are to be applied: none of these.
func BenchmarkPlan(b *testing.B) {
	for _, archive := range realdata.Measured {
		release, err := helmtemplate.Of(realdata.Read(b, "charts", archive), nil, "v1.36.3")
		if err != nil {
			b.Fatal(err)
		}
		wanted, err := record.ParseManifest(release.Manifest)
		if err != nil {
			b.Fatal(err)
		}
		var inventory []record.Entry
		for _, o := range wanted {
			e := record.EntryOf(o)
			e.UID, e.Fields = "known", drift.Fields(1)
			inventory = append(inventory, e)
		}
		made := &madeRevision{rec: &record.Record{State: &record.State{}}, inventory: inventory, objects: wanted}
		b.Run(archive, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				objects, err := record.ParseManifest(release.Manifest)
				if err != nil {
					b.Fatal(err)
				}
				if same := made.unchanged(objects, ""); len(same) != len(wanted) {
					b.Fatalf("%d of %d objects are the same", len(same), len(wanted))
				}
			}
		})
	}
}
