// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/drift"
)

// TestAlteredBy tells the fields that a manager has before or after from those that the server sets with them. What each write
// counts up, and a status, is neither.
func TestAlteredBy(t *testing.T) {
	live := object(t, deployment)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{applied(ours, all)})
	after := object(t, deployment)
	after.SetManagedFields([]metav1.ManagedFieldsEntry{applied(ours, without(all, `"f:a/b":{}`))})
	after.SetGeneration(2)
	for path, value := range map[string]any{"spec.replicas": int64(3), "spec.paused": true, "status.replicas": int64(9)} {
		set(t, after, value, path)
	}
	unstructured.RemoveNestedField(after.Object, "metadata", "labels")
	var texts []string
	for _, a := range drift.AlteredBy(live, after, ours) {
		texts = append(texts, fmt.Sprintf("%s %v %v owned=%t server=%t", a.Path, a.Before, a.After, a.Owned, a.ByServer))
	}
	slices.Sort(texts)
	if d := cmp.Diff([]string{
		".metadata.labels.a/b x <nil> owned=true server=false", ".spec.paused <nil> true owned=false server=true", ".spec.replicas 2 3 owned=true server=false",
	}, texts); d != "" {
		t.Error(d)
	}
}

func set(t *testing.T, o *unstructured.Unstructured, value any, path string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, strings.Split(path, ".")...); err != nil {
		t.Fatal(err)
	}
}
