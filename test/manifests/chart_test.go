// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/long"
)

// loadChart makes the chart of the released version, and loads its archive.
func loadChart(t *testing.T) *helmchart.Chart {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	out, err := makeRelease(t, dir, "release-chart", "VERSION="+released)
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	archive, err := os.ReadFile(filepath.Join(dir, "chandler-"+strings.TrimPrefix(released, "v")+".tgz"))
	g.Expect(err).NotTo(HaveOccurred())
	chart, err := loader.LoadArchive(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	return chart
}

// releaseOf returns the objects of a release, as `helm template` does.
func releaseOf(t *testing.T, chart *helmchart.Chart, name, namespace string, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	install := action.NewInstall(&action.Configuration{Releases: storage.Init(driver.NewMemory()), KubeClient: &fake.PrintingKubeClient{Out: &bytes.Buffer{}}})
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, name, namespace
	release, err := install.RunWithContext(t.Context(), chart, values)
	if err != nil {
		return nil, err
	}
	return record.ParseManifest(release.(*helmrelease.Release).Manifest)
}

// byIdentity returns objects by kind, namespace and name.
func byIdentity(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		NewWithT(t).Expect(all).NotTo(HaveKey(identity(o)))
		all[identity(o)] = o.Object
	}
	return all
}

// A release has the objects of its overlay. The namespace is there already, CRDs stay, and the image is that of the version.
func TestChartIsTheOverlays(t *testing.T) {
	chart := loadChart(t)
	instance := func(namespaces []string, filter string) []*unstructured.Unstructured {
		return buildInstance(t, kustomization.Instance{Name: "red", Namespaces: namespaces, Filter: filter})
	}
	for name, tc := range map[string]struct {
		release, namespace string
		values             map[string]any
		overlay            []*unstructured.Unstructured
	}{
		"all":                       {"chandler", "chandler-system", nil, build(t, allInOne)},
		"shared":                    {"any", "chandler-webhooks", map[string]any{"mode": "shared"}, build(t, shared)},
		"instance":                  {"red", "chandler-red", map[string]any{"mode": "instance"}, instance(nil, "")},
		"instance of a namespace":   {"red", "chandler-red", map[string]any{"mode": "instance", "namespaces": []any{"team-a"}}, instance([]string{"team-a"}, "")},
		"instance of two":           {"red", "chandler-red", map[string]any{"mode": "instance", "namespaces": []any{"team-a", "team-b"}}, instance([]string{"team-a", "team-b"}, "")},
		"instance of what it is in": {"red", "chandler-red", map[string]any{"mode": "instance", "namespaces": []any{"chandler-red"}}, instance([]string{"chandler-red"}, "")},
		"instance with a filter":    {"red", "chandler-red", map[string]any{"mode": "instance", "watchFilter": "Blue_1.x"}, instance(nil, "Blue_1.x")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rendered, err := releaseOf(t, chart, tc.release, tc.namespace, tc.values)
			g.Expect(err).NotTo(HaveOccurred())
			is, want := byIdentity(t, rendered), map[string]map[string]any{}
			for _, o := range tc.overlay {
				switch o.GetKind() {
				case "Namespace":
					continue
				case "CustomResourceDefinition":
					annotations := o.GetAnnotations()
					annotations["helm.sh/resource-policy"] = "keep"
					o.SetAnnotations(annotations)
				case "Deployment":
					container := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
					container["image"] = "ghcr.io/cluster-chandler/chandler:" + released
				}
				want[identity(o)] = o.Object
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Nothing of a release is in another namespace than its own, whatever that is, or has another instance's label.
func TestChartInAnyNamespace(t *testing.T) {
	long.InCI(t)
	chart := loadChart(t)
	for _, mode := range []string{"all", "shared", "instance"} {
		objects, err := releaseOf(t, chart, "123", "1e3", map[string]any{"mode": mode})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, o := range objects {
			text, err := o.MarshalJSON()
			if err != nil || bytes.Contains(text, []byte("chandler-system")) || bytes.Contains(text, []byte("release-name")) ||
				bytes.Contains(text, []byte(`"chandler-webhooks.`)) || bytes.Contains(text, []byte(`/instance":"chandler"`)) || o.GetNamespace() != "" && o.GetNamespace() != "1e3" {
				t.Errorf("mode %s: %s: %v", mode, identity(o), err)
			}
		}
	}
}

// All values of the chart have an effect on the Deployment, in each mode.
func TestChartValues(t *testing.T) {
	chart := loadChart(t)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, mode := range []string{"all", "shared", "instance"} {
		g := NewWithT(t)
		objects, err := releaseOf(t, chart, "red", "red", map[string]any{
			"mode": mode, "image": map[string]any{"repository": "registry.example.org/chandler", "tag": "v1", "digest": digest}, "replicas": 0,
			"verbosity": 5, "extraArgs": []any{"--qps=1"}, "env": []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy"}},
			"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, "goMemLimit": "1e9",
			"namespaces": []any{"team-a", "on"}, "watchFilter": "Blue_1.x",
			"podSpec":     map[string]any{"imagePullSecrets": []any{map[string]any{"name": "pull"}}, "tolerations": []any{}},
			"certManager": map[string]any{"issuerRef": map[string]any{"kind": "ClusterIssuer", "name": "ours"}}, "crds": map[string]any{"keep": false},
		})
		g.Expect(err).NotTo(HaveOccurred())
		spec := one[appsv1.Deployment](t, objects, "Deployment").Spec
		container := spec.Template.Spec.Containers[0]
		g.Expect(spec.Replicas).To(HaveValue(BeZero()))
		g.Expect(container.Image).To(Equal("registry.example.org/chandler:v1@" + digest))
		g.Expect(container.Args[len(container.Args)-2:]).To(Equal([]string{"--v=5", "--qps=1"}))
		g.Expect(container.Env).To(ContainElements(corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy"}, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1e9"}))
		g.Expect(container.Resources.Requests).To(BeEmpty())
		g.Expect(container.Resources.Limits.Memory().String()).To(Equal("1Gi"))
		g.Expect(spec.Template.Spec.ImagePullSecrets).To(HaveLen(1))
		g.Expect(spec.Template.Spec.Tolerations).To(BeEmpty())
		roles := map[string]int{} // of the manager, by their namespaces
		for _, o := range objects {
			g.Expect(o.GetKind()).NotTo(Equal("Issuer"))
			g.Expect(o.GetAnnotations()).NotTo(HaveKey("helm.sh/resource-policy"))
			if o.GetKind() == "Certificate" {
				g.Expect(o.Object["spec"]).To(HaveKeyWithValue("issuerRef", map[string]any{"kind": "ClusterIssuer", "name": "ours"}))
			}
			if strings.HasPrefix(o.GetName(), "chandler-manager-role") {
				roles[o.GetNamespace()]++
			}
		}
		if mode != "shared" { // which manages nothing
			g.Expect(container.Env).To(ContainElements(corev1.EnvVar{Name: "NAMESPACES", Value: "team-a,on"}, corev1.EnvVar{Name: "WATCH_FILTER", Value: "Blue_1.x"}))
			g.Expect(roles).To(Equal(map[string]int{"team-a": 2, "on": 2}))
		}
	}
	for name, values := range map[string]map[string]any{
		"an unknown value": {"image": map[string]any{"name": "x"}}, "an unknown mode": {"mode": "webhooks"},
		"a variable of its own": {"env": []any{map[string]any{"name": "NAMESPACES"}}}, "pods of another kind": {"podSpec": map[string]any{"containers": []any{}}},
		"no digest": {"image": map[string]any{"digest": "sha256:abc"}},
	} {
		if _, err := releaseOf(t, chart, "red", "red", values); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// The values that docs/helm-chart.md sets are those of the chart.
func TestChartPage(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	page, err := docs.Read(root, "docs/helm-chart.md")
	g.Expect(err).NotTo(HaveOccurred())
	chart, found := loadChart(t), 0
	for _, line := range page.Lines() {
		if !strings.HasPrefix(line, "$ helm install ") {
			continue
		}
		found++
		values := map[string]any{}
		for _, set := range regexp.MustCompile(`--set (?:'([^']*)'|(\S+))`).FindAllStringSubmatch(line, -1) {
			g.Expect(strvals.ParseInto(set[1]+set[2], values)).To(Succeed(), line)
		}
		_, err := releaseOf(t, chart, strings.Fields(line)[3], "any", values)
		g.Expect(err).NotTo(HaveOccurred(), line)
	}
	g.Expect(found).To(Equal(3))
	rows := map[string]bool{}
	for _, row := range page.Rows("value") {
		for _, name := range row.Code(0) {
			name, _, _ = strings.Cut(name, ".")
			rows[name] = true
		}
	}
	for name := range chart.Values {
		g.Expect(rows).To(HaveKey(name), "the page has a row for each value")
	}
}
