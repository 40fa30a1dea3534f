// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

func objectOf(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

func TestWaves(t *testing.T) {
	objects := []*unstructured.Unstructured{
		objectOf("v1", "Namespace", "ns"), objectOf("v1", "Secret", "s"), objectOf("v1", "ConfigMap", "c"),
		objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		objectOf("rbac.authorization.k8s.io/v1", "Role", "r"), objectOf("rbac.authorization.k8s.io/v1", "RoleBinding", "rb"),
		objectOf("v1", "Service", "svc"), objectOf("apps/v1", "Deployment", "d"),
		objectOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"),
		objectOf("example.com/v1", "Service", "not-the-core-one"), objectOf("example.com/v1", "Widget", "w"),
	}
	want := [][]string{{"ns"}, {"c", "s"}, {"crd"}, {"r"}, {"rb"}, {"svc"}, {"d"}, {"v"}, {"not-the-core-one", "w"}}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	got := object.Waves(objects)
	if len(got) != len(want) {
		t.Fatalf("%d waves", len(got))
	}
	for i, wave := range got {
		names := map[string]bool{}
		for _, o := range wave {
			names[o.GetName()] = true
		}
		for _, name := range want[i] {
			if !names[name] || len(names) != len(want[i]) {
				t.Errorf("wave %d is %v, want %v", i, names, want[i])
			}
		}
	}
}

func TestRemovalWaves(t *testing.T) {
	var entries []record.Entry
	for _, o := range []*unstructured.Unstructured{
		objectOf("v1", "Namespace", "n"), objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd"),
		objectOf("v1", "ServiceAccount", "sa"), objectOf("apps/v1", "Deployment", "d"),
		objectOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v"), objectOf("example.com/v1", "Widget", "w"),
	} {
		entries = append(entries, record.EntryOf(o))
	}
	var got [][]string
	for _, wave := range object.RemovalWaves(entries) {
		var names []string
		for _, e := range wave {
			names = append(names, e.Name)
		}
		got = append(got, names)
	}
	if d := cmp.Diff([][]string{{"w"}, {"v", "d", "sa"}, {"crd"}, {"n"}}, got); d != "" {
		t.Error(d)
	}
}
