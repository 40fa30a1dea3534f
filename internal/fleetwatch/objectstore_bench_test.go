// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/test/must"
)

// BenchmarkObjectsKept measures what is kept of an object that is watched, and how long it
// takes to take in an event of it.
func BenchmarkObjectsKept(b *testing.B) {
	const objects = 1000
	texts := make([][]byte, objects)
	for i := range texts {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ingress-nginx", Name: fmt.Sprintf("ingress-nginx-controller-%d", i), ResourceVersion: fmt.Sprint(i + 1),
			Labels: map[string]string{addonsv1.AddonLabel: "ingress-nginx", addonsv1.AddonNamespaceLabel: "ingress-nginx", "app.kubernetes.io/name": "ingress-nginx"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: object.FieldManager(deliver.Release{Namespace: "ingress-nginx", Name: "ingress-nginx"}), Operation: metav1.ManagedFieldsOperationApply,
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:addons.cluster.x-k8s.io/addon":{}}},"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:targetPort":{}}},"f:selector":{},"f:type":{}}}`),
			}},
		}}
		texts[i], _ = json.Marshal(o)
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var kept uint64
	var last *kindOfObjects
	for b.Loop() {
		last = nil
		before := heap()
		kind := schema.GroupKind{Kind: "Service"}
		c := &clusterObjects{limit: maxObjects, notify: func() {}, kinds: map[schema.GroupKind]*kindOfObjects{}, releases: map[deliver.Release]*watchedAddon{}}
		store := &kindOfObjects{cluster: c, kind: kind}
		c.kinds[kind] = store
		must.Succeed(b, store.replace(map[types.NamespacedName]seenObject{}, map[deliver.Release]drift.Sum{}))
		for _, text := range texts {
			o := &metav1.PartialObjectMetadata{}
			must.Succeed(b, json.Unmarshal(text, o))
			must.Succeed(b, store.change(o, true))
		}
		kept, last = heap()-before, store
	}
	if len(last.objects) != objects {
		b.Fatalf("%d objects", len(last.objects))
	}
	b.ReportMetric(float64(kept)/objects, "B/object")
}
