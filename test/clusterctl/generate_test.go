// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestGenerateProvider has clusterctl read the release as it does before any installation.
func TestGenerateProvider(t *testing.T) {
	t.Parallel()
	released := released(t, olderVersion)

	t.Run("changes nothing but its own label", func(t *testing.T) {
		g := NewWithT(t)
		generated := byName(t, []byte(mustRun(t, "generate", "provider", "--addon", "chandler:"+olderVersion)))
		for name, obj := range generated {
			if strings.HasPrefix(obj.GetKind(), "ValidatingAdmissionPolicy") { // clusterctl takes it for namespaced, which an API server ignores
				obj.SetNamespace("")
				name = obj.GetKind() + " /" + obj.GetName()
			}
			labels := obj.GetLabels()
			g.Expect(labels).To(HaveKey(clusterctlv1.ClusterctlLabel), name)
			delete(labels, clusterctlv1.ClusterctlLabel)
			obj.SetLabels(labels)
			g.Expect(released).To(HaveKey(name))
			g.Expect(withoutEmpty(obj.Object)).To(Equal(withoutEmpty(released[name].Object)), name)
		}
		g.Expect(generated).To(HaveLen(len(released)))
	})

	t.Run("moves everything to another namespace", func(t *testing.T) {
		g := NewWithT(t)
		out := mustRun(t, "generate", "provider", "--addon", "chandler:"+olderVersion, "--target-namespace", "elsewhere")
		for line := range strings.Lines(out) {
			g.Expect(line).NotTo(ContainSubstring("chandler-system"), "the release installs in any namespace")
		}
	})

	t.Run("names the image of the version", func(t *testing.T) {
		NewWithT(t).Expect(mustRun(t, "generate", "provider", "--addon", "chandler:"+newerVersion, "--describe")).To(And(
			ContainSubstring("Type:               AddonProvider"),
			ContainSubstring("Version:            "+newerVersion),
			ContainSubstring("TargetNamespace:    chandler-system"),
			ContainSubstring("ghcr.io/cluster-chandler/chandler:"+newerVersion),
		))
	})
}

// TestVariables sets each variable that docs/clusterctl.md has, as people do: in the environment of clusterctl.
func TestVariables(t *testing.T) {
	g := NewWithT(t)
	values := map[string]string{
		"CHANDLER_VERBOSITY": "5", "CHANDLER_ARGS": "--kube-api-qps=50 --render-workers=4",
		"CHANDLER_HTTP_PROXY": "http://proxy.example.org:3128", "CHANDLER_HTTPS_PROXY": "http://[fd00::1]:3128", "CHANDLER_NO_PROXY": "*.example.org,10.0.0.0/8,.svc",
	}
	page, err := docs.Read(world.root, "docs/clusterctl.md")
	g.Expect(err).NotTo(HaveOccurred())
	defaults := map[string]string{}
	for _, row := range page.Rows("variable") {
		defaults[row.Code(0)[0]] = strings.Trim(row.Text(1), "`-")
	}
	for _, match := range variable.FindAllStringSubmatch(string(components(t, olderVersion)), -1) {
		g.Expect(defaults).To(HaveKeyWithValue(match[1], strings.Trim(match[2], `"`)))
		g.Expect(values).To(HaveKey(match[1]))
	}
	g.Expect(defaults).To(HaveLen(len(values)))
	for name, value := range values {
		t.Setenv(name, value)
	}
	deployment := &appsv1.Deployment{}
	for _, obj := range byName(t, []byte(mustRun(t, "generate", "provider", "--addon", "chandler:"+olderVersion))) {
		if obj.GetKind() == "Deployment" {
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, deployment, true)).To(Succeed())
		}
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	g.Expect(container.Args).To(ContainElement("--v=5"))
	for name, value := range values {
		if name != "CHANDLER_VERBOSITY" {
			if name != "CHANDLER_ARGS" {
				name = strings.TrimPrefix(name, "CHANDLER_")
			}
			g.Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: name, Value: value}))
		}
	}
}

// The manager takes the arguments of the variable behind its own.
func TestMoreArguments(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), world.managers[olderVersion], "--v=2")
	cmd.Env = []string{"CHANDLER_ARGS= --v=3  --version"}
	out, err := cmd.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
	NewWithT(t).Expect(string(out)).To(ContainSubstring(olderVersion))
}

func byName(t *testing.T, manifests []byte) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := utilyaml.ToUnstructured(manifests)
	must.Succeed(t, err)
	named := map[string]*unstructured.Unstructured{}
	for i := range objects {
		o := &objects[i]
		name := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		if named[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		named[name] = o
	}
	return named
}

// withoutEmpty drops what is null, empty or zero: clusterctl reads some kinds into Go types and writes these.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range v {
			if field = withoutEmpty(field); field != nil {
				kept[key] = field
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, item := range v {
			kept = append(kept, withoutEmpty(item))
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case int64, float64, string, bool:
		if fmt.Sprint(v) == "" {
			return nil
		}
		return v
	default:
		return v
	}
}
