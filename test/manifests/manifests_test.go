// SPDX-License-Identifier: Apache-2.0

// Package manifests tests what `kustomize build config/default` makes: by
// clusterctl's contract, and by a real API server.
package manifests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// instances are overlays that each make one instance.
var instances = []string{"../../config/instance", "../../config/samples/instances/by-namespace", "../../config/samples/instances/by-filter"}

// An instance may do nothing outside of its namespace, but ask who reads its metrics.
func TestInstancesStayInTheirNamespace(t *testing.T) {
	seen := map[string]string{}
	for _, path := range instances {
		objects := build(t, path)
		namespace := ""
		for _, o := range objects {
			switch o.GetKind() {
			case "ClusterRole", "ClusterRoleBinding":
				if !strings.HasPrefix(o.GetName(), "chandler-metrics-auth") {
					t.Errorf("%s has %s %s", path, o.GetKind(), o.GetName())
				}
				if other, ok := seen[o.GetKind()+o.GetName()]; ok {
					t.Errorf("%s and %s would fight over %s %s", path, other, o.GetKind(), o.GetName())
				}
				seen[o.GetKind()+o.GetName()] = path
			default:
				if namespace == "" {
					namespace = o.GetNamespace()
				}
				if o.GetNamespace() != namespace || namespace == "" {
					t.Errorf("%s: %s %s is in namespace %q, others in %q", path, o.GetKind(), o.GetName(), o.GetNamespace(), namespace)
				}
			}
		}
		for _, binding := range find[rbacv1.RoleBinding](t, objects, "RoleBinding") {
			if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == binding.RoleRef.Kind && o.GetName() == binding.RoleRef.Name
			}) {
				t.Errorf("%s: RoleBinding %s is for %s %s, which isn't there", path, binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
			}
		}
		args := find[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.Containers[0].Args
		for _, want := range []string{"--run=controllers", "--namespace=$(POD_NAMESPACE)", "--leader-elect"} {
			if !slices.Contains(args, want) {
				t.Errorf("%s: the manager isn't started with %s", path, want)
			}
		}
	}
}

// The shared deployment has no right at all, and there are two of it.
func TestSharedHasNoRights(t *testing.T) {
	objects := build(t, "../../config/shared")
	for _, o := range objects {
		if strings.HasSuffix(o.GetKind(), "Binding") {
			t.Errorf("%s %s gives rights", o.GetKind(), o.GetName())
		}
	}
	deployment := find[appsv1.Deployment](t, objects, "Deployment")[0]
	if *deployment.Spec.Replicas < 2 || !slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--run=webhooks") {
		t.Errorf("want two replicas or more that serve webhooks: %v", deployment.Spec)
	}
}

// A real API server takes everything but cert-manager's kinds, which it doesn't know:
// all in one, and shared with instances beside it.
func TestAPIServerTakesManifests(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "manifests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(path string, options ...client.CreateOption) {
		for _, o := range build(t, path) {
			if o.GroupVersionKind().Group == "cert-manager.io" {
				continue
			}
			options := append([]client.CreateOption{client.FieldValidation("Strict")}, options...)
			err := c.Create(t.Context(), o, options...)
			if shared := o.GetKind() == "CustomResourceDefinition"; shared && apierrors.IsAlreadyExists(err) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", path, o.GetKind(), o.GetName(), err)
			}
		}
	}
	for _, namespace := range []string{"chandler-instance", "team-a", "team-b"} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	create("../../config/shared")
	for _, path := range instances {
		create(path)
	}
	if err := c.DeleteAllOf(t.Context(), &admissionv1.ValidatingWebhookConfiguration{}); err != nil {
		t.Fatal(err)
	}
	create("../../config/default")
}
