// SPDX-License-Identifier: Apache-2.0

// Package manifests tests what `kustomize build config/default` makes: by
// clusterctl's contract, and by a real API server.
package manifests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

const providerLabel = "cluster.x-k8s.io/provider"

func build(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", path, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &typed); err != nil {
			t.Fatalf("%s %s: %v", kind, o.GetName(), err)
		}
		found = append(found, typed)
	}
	return found
}

// clusterctl's provider contract: one namespace, a container named manager, the
// provider label on everything, variables nowhere but where there are defaults.
func TestDefaultKeepsClusterctlsContract(t *testing.T) {
	objects := build(t, "../../config/default")
	for _, o := range objects {
		if o.GetLabels()[providerLabel] != "addon-chandler" {
			t.Errorf("%s %s has label %s=%q, want addon-chandler", o.GetKind(), o.GetName(), providerLabel, o.GetLabels()[providerLabel])
		}
		if o.GetNamespace() != "" && o.GetNamespace() != "chandler-system" {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		if text := fmt.Sprint(o.Object); strings.Contains(text, "${") {
			t.Errorf("%s %s has a variable: kubectl apply would leave it as it is", o.GetKind(), o.GetName())
		}
		if o.GetKind() == "CustomResourceDefinition" && o.GetLabels()["cluster.x-k8s.io/v1beta2"] != "v1beta1" {
			t.Errorf("%s doesn't say with which contract its version works", o.GetName())
		}
	}
	if n := len(find[corev1.Namespace](t, objects, "Namespace")); n != 1 {
		t.Errorf("%d namespaces, want one", n)
	}
	deployments := find[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != 1 || deployments[0].Spec.Template.Spec.Containers[0].Name != "manager" {
		t.Errorf("want one Deployment with a container named manager: %v", deployments)
	}
}

// What the manager may do on the management cluster is no more than it needs: a
// wildcard for verbs or groups, or the right to give itself more, is a mistake.
func TestRightsAreBounded(t *testing.T) {
	objects := build(t, "../../config/default")
	for _, role := range find[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind") || slices.Contains(rule.Verbs, "impersonate") {
				t.Errorf("%s: %v is too much", role.Name, rule)
			}
			if slices.Contains(rule.Resources, "secrets") && slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" }) {
				t.Errorf("%s: writes Secrets of the management cluster: %v", role.Name, rule)
			}
		}
	}
}

// A real API server takes everything but cert-manager's kinds, which it doesn't know.
func TestAPIServerTakesDefault(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "manifests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range build(t, "../../config/default") {
		if o.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		if err := c.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
