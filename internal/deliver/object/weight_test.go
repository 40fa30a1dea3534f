// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestWeightIsWhatObjectsTake compares estimates with the heap: while objects are parsed, and then.
func TestWeightIsWhatObjectsTake(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that little of it is garbage
	const begin = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	for name, manifest := range map[string]string{
		"many objects": strings.Repeat(begin+"data: {key: value}\n", 2000),
		"a long text":  begin + "data: {key: '" + strings.Repeat("x", 2_000_000) + "'}\n",
		"a list":       begin + "data: [" + strings.Repeat("a,", 50_000) + "]\n",
		"a map":        begin + "data:\n" + lines(20_000),
		"small maps":   begin + "data: [" + strings.Repeat("a: b,", 20_000) + "]\n",
		"a block":      begin + "data:\n" + strings.Repeat("- - - a\n", 20_000),
		"empty lists":  begin + "data: [" + strings.Repeat("[],", 50_000) + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := &record.Record{Helm: &helmrelease.Release{Manifest: manifest}}
			var objects []*unstructured.Unstructured
			var err error
			before := heap()
			parsing := cost.Of(func() { objects, err = r.Manifest() })
			must.Succeed(t, err)
			took, weight := heap()-before, object.Weight(objects...)
			if weight < took/2 || weight > 2*took {
				t.Errorf("estimated %d bytes of %d", weight, took)
			}
			if most := r.ParsingCost() + 2*weight; int64(parsing.Held) > most && !cost.RaceDetector() {
				t.Errorf("%d bytes while they are parsed, estimated %d", parsing.Held, most)
			}
			runtime.KeepAlive(objects)
		})
	}
}

func lines(n int) string {
	var text strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&text, "  key%d: value\n", i)
	}
	return text.String()
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
