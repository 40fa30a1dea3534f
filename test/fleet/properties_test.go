// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestPropertiesOfACluster are its ClusterProperties. Without that API, a cluster is known by its UID.
func TestPropertiesOfACluster(t *testing.T) {
	h := start(t, quick(secrets.New(secrets.Options{})))
	h.member(t, "one", h.workload.Kubeconfig())
	conn := h.connected(t, h.memberName("one"))
	system := &corev1.Namespace{}
	must.Succeed(t, h.workloads.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system))
	is := func(want string) {
		t.Helper()
		wait.Until(t, patience, "the ID", func() error {
			if id, err := conn.ID(t.Context()); err != nil || id != want {
				conn.InvalidateFacts()
				_, _ = conn.Facts(t.Context())
				return fmt.Errorf("it is %q, not %q (%w)", id, want, err)
			}
			return nil
		})
	}
	is(string(system.UID))
	if properties, err := conn.Properties(t.Context()); err != nil || len(properties) > 0 {
		t.Errorf("%v, %v", properties, err)
	}

	apply := func(object map[string]any) {
		t.Helper()
		u := &unstructured.Unstructured{Object: object}
		if err := h.workloads.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	apply(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "clusterproperties.about.k8s.io",
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/2149"}},
		"spec": map[string]any{
			"group": "about.k8s.io", "scope": "Cluster", "names": map[string]any{"kind": "ClusterProperty", "plural": "clusterproperties"},
			"versions": []any{map[string]any{
				"name": "v1beta1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
	property := func(name, value string) {
		t.Helper()
		wait.Until(t, patience, "the property", func() error {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty", "metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
			}}
			return h.workloads.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership)
		})
	}
	property("id.k8s.io", "older")
	is("older")
	property(fleet.PropertyID, "cluster-1")
	property(fleet.PropertyClusterSet, "set")
	is("cluster-1")
	properties, err := conn.Properties(t.Context())
	if err != nil || properties[fleet.PropertyClusterSet] != "set" {
		t.Errorf("%v, %v", properties, err)
	}
	property(fleet.PropertyID, "../no name") // a cluster says what it likes
	is("older")
}
