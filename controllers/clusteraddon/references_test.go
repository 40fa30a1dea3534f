// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReferences(t *testing.T) {
	r := references{}
	one, two := client.ObjectKey{Name: "one"}, client.ObjectKey{Name: "two"}
	values := inputObject{kind: "Secret", key: client.ObjectKey{Name: "values"}}
	chart := inputObject{kind: "ConfigMap", key: client.ObjectKey{Name: "chart"}}

	r.add(one, values)
	r.add(one, chart)
	r.add(two, values)
	if got := sets.New(r.of(values)...); !got.Equal(sets.New(one, two)) {
		t.Errorf("users of values: %v", got)
	}
	r.set(one, sets.New(values))
	if got := r.of(chart); len(got) != 0 {
		t.Errorf("users of chart, which nobody uses any more: %v", got)
	}
	if got := r.of(values); len(got) != 2 {
		t.Errorf("users of values, which both use: %v", got)
	}
	r.set(one, nil)
	r.set(two, nil)
	if len(r.used)+len(r.users) > 0 {
		t.Errorf("left in memory: %v, %v", r.used, r.users)
	}
}
