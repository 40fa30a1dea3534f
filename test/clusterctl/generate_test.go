// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
)

// TestGenerateProvider has clusterctl read the release as it does before any installation.
func TestGenerateProvider(t *testing.T) {
	t.Parallel()
	released := released(t, olderVersion)

	t.Run("changes nothing but its own label", func(t *testing.T) {
		g := NewWithT(t)
		generated := byName(t, []byte(mustRun(t, "generate", "provider", "--addon", "chandler:"+olderVersion)))
		for name, obj := range generated {
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

func byName(t *testing.T, manifests []byte) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := utilyaml.ToUnstructured(manifests)
	if err != nil {
		t.Fatal(err)
	}
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
