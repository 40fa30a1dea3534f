// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"

	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/test/helmtemplate"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// BenchmarkRecord measures the Secret of a release: to make one, and to read it.
func BenchmarkRecord(b *testing.B) {
	for _, archive := range realdata.Measured {
		release, err := helmtemplate.Of(realdata.Read(b, "charts", archive), nil, "v1.36.3")
		must.Succeed(b, err)
		objects, err := ParseManifest(release.Manifest)
		must.Succeed(b, err)
		r := &Record{
			Summary: Summary{Release: Release{Namespace: release.Namespace, Name: release.Name}, Revision: 1, Status: "deployed", Complete: true},
			Helm:    release,
			State:   &State{Format: currentFormat},
		}
		r.Helm.Chart.Templates, r.Helm.Chart.Files, r.Helm.Chart.Raw = nil, nil, nil // they aren't recorded
		for _, o := range objects {
			r.State.Inventory = append(r.State.Inventory, EntryOf(o))
		}
		store := &Store{Clock: clock.RealClock{}}
		secret, err := store.encode(b.Context(), r)
		must.Succeed(b, err)
		b.Run(archive+"/write", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.encode(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size(secret)), "B/record")
		})
		b.Run(archive+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (&reader{}).record(secret); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
