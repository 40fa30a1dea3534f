// SPDX-License-Identifier: Apache-2.0

// Package manifests tests what `kustomize build` makes of the overlays in config/, and of
// those that docs/instances.md shows. It does so by clusterctl's contract, by the rights
// they give, and by a real API server. It renders the samples.
package manifests

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
)

const (
	allInOne = "../../config/default"
	shared   = "../../config/shared"
)

// instances are overlays that each make one instance, and what it manages; nothing
// is all namespaces. Those in instances/ are what docs/instances.md shows.
var instances = map[string][]string{
	"../../config/instance": {"chandler-instance"},
	"instances/red":         {"team-a"},
	"instances/blue":        {"team-b"},
	"instances/green":       {"team-c", "team-d"},
	"instances/violet":      nil,
}

func build(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	if strings.HasPrefix(path, "instances/") {
		path = filepath.Join(documented(t), path)
	}
	objects, err := kustomization.Build(path)
	must.Succeed(t, err)
	return objects
}

// withComponent writes an overlay of an overlay, with one of the components in config/, and returns its folder.
func withComponent(t *testing.T, path, component string) string {
	t.Helper()
	g := NewWithT(t)
	if strings.HasPrefix(path, "instances/") {
		path = filepath.Join(documented(t), path)
	}
	dir := t.TempDir()
	relative := func(path string) string {
		absolute, err := filepath.Abs(path)
		g.Expect(err).NotTo(HaveOccurred())
		back, err := filepath.Rel(dir, absolute)
		g.Expect(err).NotTo(HaveOccurred())
		return back
	}
	text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", relative(path), relative("../../config/"+component))
	g.Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())
	return dir
}

func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	found, err := kustomization.Find[T](objects, kind)
	must.Succeed(t, err)
	return found
}

// one is the only object of its kind.
func one[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) T {
	t.Helper()
	found := find[T](t, objects, kind)
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want one", len(found), kind)
	}
	return found[0]
}

// clusterctl's provider contract: one namespace, a container named manager, the
// provider label on everything, variables nowhere but where there are defaults.
func TestDefaultKeepsClusterctlsContract(t *testing.T) {
	objects := build(t, allInOne)
	for _, o := range objects {
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
	if ns := one[corev1.Namespace](t, objects, "Namespace"); ns.Name != "chandler-system" {
		t.Errorf("namespace %s", ns.Name)
	}
	deployment := one[appsv1.Deployment](t, objects, "Deployment")
	if name := deployment.Spec.Template.Spec.Containers[0].Name; name != "manager" {
		t.Errorf("the container is named %s", name)
	}
}

// clusterctl installs the default, and nothing of it is a variable but what people set.
func TestClusterctlsOverlay(t *testing.T) {
	g := NewWithT(t)
	is, want := byIdentity(t, build(t, "../../config/clusterctl")), byIdentity(t, build(t, allInOne))
	const deployment = "Deployment.apps chandler-system/chandler-controller-manager"
	for key := range want {
		if key != deployment {
			g.Expect(is[key]).To(Equal(want[key]), key)
		}
	}
	g.Expect(is).To(HaveLen(len(want)))
	with, without := one[appsv1.Deployment](t, build(t, "../../config/clusterctl"), "Deployment"), one[appsv1.Deployment](t, build(t, allInOne), "Deployment")
	container, plain := &with.Spec.Template.Spec.Containers[0], &without.Spec.Template.Spec.Containers[0]
	for _, variable := range container.Env[len(plain.Env):] {
		g.Expect(variable.Value).To(MatchRegexp(`^\$\{CHANDLER_[A-Z_]+:=.+\}$`))
	}
	container.Env = container.Env[:len(plain.Env)]
	container.Args[slices.Index(container.Args, "--v=${CHANDLER_VERBOSITY:=2}")] = "--v=2"
	g.Expect(with).To(Equal(without))
}

// Whoever refers to a version's overlays, as docs/instances.md does, runs the image of that version.
func TestOverlaysRunAReleasedImage(t *testing.T) {
	for _, path := range append(slices.Collect(maps.Keys(instances)), allInOne, shared) {
		image := one[appsv1.Deployment](t, build(t, path), "Deployment").Spec.Template.Spec.Containers[0].Image
		NewWithT(t).Expect(image).To(Equal("ghcr.io/cluster-chandler/chandler:"+released), path)
	}
}

// Labels show what belongs to Chandler, and to one instance of it.
func TestLabels(t *testing.T) {
	overlays := []string{allInOne, shared}
	for path := range instances {
		overlays = append(overlays, path)
	}
	for _, path := range overlays {
		name := ""
		for _, o := range build(t, path) {
			if label := o.GetLabels()["cluster.x-k8s.io/provider"]; label != "addon-chandler" {
				t.Errorf("%s: %s %s has the provider label %q", path, o.GetKind(), o.GetName(), label)
			}
			instance := o.GetLabels()["app.kubernetes.io/instance"]
			if name == "" {
				name = instance
			}
			if instance != name {
				t.Errorf("%s: %s %s is of instance %q, others of %q", path, o.GetKind(), o.GetName(), instance, name)
			}
		}
	}
}

// How each overlay starts the program.
func TestArguments(t *testing.T) {
	controllers := func(name, namespaces, filter string) []string {
		return []string{
			"--leader-elect", "--instance-name=" + name, "--namespace=" + namespaces, "--watch-filter=" + filter,
			"--artifact-root=/charts", "--credentials-dir=/credentials", "--cache-dir=/cache", "--cache-size-mib=1024", "--render-workers=2", "--v=2",
		}
	}
	alone := func(args []string) []string { return append([]string{"--run=controllers"}, args...) }
	for path, want := range map[string][]string{
		allInOne:                controllers("chandler", "", ""),
		shared:                  {"--run=webhooks", "--diagnostics-address=0", "--v=2"},
		"../../config/instance": alone(controllers("chandler", "chandler-instance", "")),
		"instances/red":         alone(controllers("red", "team-a", "")),
		"instances/blue":        alone(controllers("blue", "team-b", "blue")),
		"instances/green":       alone(controllers("green", "team-c,team-d", "")),
		"instances/violet":      alone(controllers("violet", "", "violet")),
	} {
		t.Run(path, func(t *testing.T) {
			deployment := one[appsv1.Deployment](t, build(t, path), "Deployment")
			args, err := kustomization.Args(&deployment)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(args).To(Equal(want))
			if path != allInOne {
				g.Expect(*deployment.Spec.Replicas).To(BeNumerically(">=", 2))
			}
		})
	}
}

// TestMemoryOfAllProcesses sees that the manager's own memory, and that of two render workers more than are wanted, fit the container.
func TestMemoryOfAllProcesses(t *testing.T) {
	const workers, worker = 2, 256 // --render-workers of TestArguments, and the default of --render-memory-mib
	for _, path := range []string{allInOne, "../../config/instance"} {
		deployment := one[appsv1.Deployment](t, build(t, path), "Deployment")
		container := deployment.Spec.Template.Spec.Containers[0]
		limit := container.Resources.Limits.Memory().Value() >> 20
		own := 0
		for _, e := range container.Env {
			if e.Name == "GOMEMLIMIT" {
				_, err := fmt.Sscanf(e.Value, "%dMiB", &own)
				must.Succeed(t, err)
			}
		}
		if all := int64(own + (workers+2)*worker); own == 0 || all > limit {
			t.Errorf("%s: GOMEMLIMIT and workers are %d MiB, of %d", path, all, limit)
		}
	}
}
