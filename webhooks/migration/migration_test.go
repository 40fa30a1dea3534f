// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/webhooks/migration"
)

const (
	patience = 30 * time.Second
	stacks   = 20
)

// TestMigration stores AddonStacks in an older version, moves storage to the newer one,
// and runs two replicas of the migration with the rights of config/shared.
func TestMigration(t *testing.T) {
	g := NewWithT(t)
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "migration", AuditLog: auditLog})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme(t)})
	g.Expect(err).NotTo(HaveOccurred())
	webhooks := withRights(t, c, cp.Config())

	crd := twoVersions(t, "v1alpha1")
	g.Expect(c.Create(t.Context(), crd)).To(Succeed())
	for i := range stacks {
		stack := stackIn("v1alpha1", fmt.Sprint("s", i))
		g.Eventually(func() error { return c.Create(t.Context(), stack) }, patience).Should(Succeed())
	}
	setVersions(g, c, crd, twoVersions(t, "v1beta1").Spec.Versions)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)).To(Succeed())
	g.Expect(crd.Status.StoredVersions).To(ConsistOf("v1alpha1", "v1beta1"))
	before := list(g, c)
	g.Expect(before).To(HaveLen(stacks))

	for range 2 {
		start(t, webhooks)
	}
	g.Eventually(func() ([]string, error) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd)
		return crd.Status.StoredVersions, err
	}, patience).Should(Equal([]string{"v1beta1"}))

	after := list(g, c)
	g.Expect(after).To(HaveLen(stacks))
	for name, stack := range after {
		g.Expect(stack.GetResourceVersion()).NotTo(Equal(before[name].GetResourceVersion()), "%s has been written anew", name)
		g.Expect(stack.GetGeneration()).To(Equal(before[name].GetGeneration()), "%s says the same as before", name)
		g.Expect(stack.Object["spec"]).To(Equal(before[name].Object["spec"]))
	}
	events, err := audit.Read(auditLog)
	g.Expect(err).NotTo(HaveOccurred())
	for _, event := range events {
		if event.ImpersonatedUser != nil {
			g.Expect(event.ResponseStatus.Code).NotTo(BeEquivalentTo(403), "%s %s: the rights are enough", event.Verb, event.RequestURI)
		}
	}

	// Nothing is stored in the older version: once that is gone, all can still be read.
	setVersions(g, c, crd, twoVersions(t, "v1beta1").Spec.Versions[1:])
	g.Eventually(func() error {
		return c.List(t.Context(), listOf("v1alpha1"))
	}, patience).ShouldNot(Succeed(), "the API server has noticed")
	g.Expect(list(g, c)).To(HaveLen(stacks))
}

// withRights gives the ServiceAccount of config/shared its rights, and acts as it.
func withRights(t *testing.T, c client.Client, config *rest.Config) *rest.Config {
	t.Helper()
	objects, err := kustomization.Build("../../config/shared")
	if err != nil {
		t.Fatal(err)
	}
	var user string
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterRole", "ClusterRoleBinding":
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		case "ServiceAccount":
			user = "system:serviceaccount:" + o.GetNamespace() + ":" + o.GetName()
		}
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return config
}

func start(t *testing.T, config *rest.Config) {
	t.Helper()
	skipNameValidation := true // there are two in this process
	options := manager.Options{
		Scheme:  scheme(t),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: migration.CacheByObject()},
	}
	options.Controller.SkipNameValidation = &skipNameValidation
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := migration.Setup(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{addonsv1.AddToScheme, apiextensionsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// twoVersions is the CRD with v1alpha1 and v1beta1, which look the same here: what is
// tested is where objects are stored, not how they are converted.
func twoVersions(t *testing.T, storage string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/addons.cluster.x-k8s.io_addonstacks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	for _, version := range crd.Spec.Versions {
		if version.Name != "v1beta1" {
			continue
		}
		for _, name := range []string{"v1alpha1", "v1beta1"} {
			version.Name, version.Storage = name, name == storage
			versions = append(versions, version)
		}
	}
	crd.Spec.Versions = versions
	crd.Spec.Conversion = nil
	return crd
}

// setVersions changes the CRD beside others who write it.
func setVersions(g *WithT, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, versions []apiextensionsv1.CustomResourceDefinitionVersion) {
	g.Eventually(func() error {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		crd.Spec.Versions = versions
		return c.Update(context.Background(), crd)
	}, patience).Should(Succeed())
}

func stackIn(version, name string) *unstructured.Unstructured {
	stack := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"clusterSelector": map[string]any{}, "addons": []any{map[string]any{
			"name": "a", "namespace": "default", "chart": map[string]any{"path": "a.tgz"},
		}}},
	}}
	stack.SetAPIVersion("addons.cluster.x-k8s.io/" + version)
	stack.SetKind("AddonStack")
	stack.SetNamespace(metav1.NamespaceDefault)
	stack.SetName(name)
	return stack
}

func listOf(version string) *unstructured.UnstructuredList {
	stacks := &unstructured.UnstructuredList{}
	stacks.SetAPIVersion("addons.cluster.x-k8s.io/" + version)
	stacks.SetKind("AddonStackList")
	return stacks
}

func list(g *WithT, c client.Client) map[string]*unstructured.Unstructured {
	stacks := listOf("v1beta1")
	g.Expect(c.List(context.Background(), stacks)).To(Succeed())
	byName := map[string]*unstructured.Unstructured{}
	for i := range stacks.Items {
		byName[stacks.Items[i].GetName()] = &stacks.Items[i]
	}
	return byName
}
